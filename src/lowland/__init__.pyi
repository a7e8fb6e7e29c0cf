"""What editors and type checkers see; a test keeps it equal to the registry."""

from lowland import datasets as datasets
from lowland import errors as errors
from lowland import io as io
from lowland import metrics as metrics
from lowland import neighbors as neighbors
from lowland import plot as plot
from lowland._core.models import load as load
from lowland.kernel.kernel_pca import KernelPCA as KernelPCA
from lowland.linear.lda import LDA as LDA
from lowland.linear.pca import PCA as PCA
from lowland.mds.classical_mds import ClassicalMDS as ClassicalMDS
from lowland.mds.landmark_mds import LandmarkMDS as LandmarkMDS
from lowland.mds.linear_mds import LinearMDS as LinearMDS
from lowland.mds.mds import MDS as MDS
from lowland.mds.nonmetric_mds import NonmetricMDS as NonmetricMDS
from lowland.mds.sammon import Sammon as Sammon
from lowland.neighbor.sne import SNE as SNE
from lowland.neighbor.symmetric_sne import SymmetricSNE as SymmetricSNE
from lowland.neighbor.tsne import TSNE as TSNE

__version__: str
