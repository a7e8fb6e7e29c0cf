"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland.workflow.aligning.result import AlignedTables as AlignedTables
from lowland.workflow.aligning.running import align_tables as align_tables
from lowland.workflow.comparing.result import MapComparison as MapComparison
from lowland.workflow.comparing.running import compare_methods as compare_methods
from lowland.workflow.describing import describe_table as describe_table
from lowland.workflow.foreign.judging import MapScore as MapScore
from lowland.workflow.foreign.judging import MapTrust as MapTrust
from lowland.workflow.foreign.judging import score_map as score_map
from lowland.workflow.foreign.judging import trust_map as trust_map
from lowland.workflow.making import make_map as make_map
from lowland.workflow.placing import PlacedParts as PlacedParts
from lowland.workflow.placing import PlacedRows as PlacedRows
from lowland.workflow.placing import place_rows as place_rows
from lowland.workflow.result import MapResult as MapResult
from lowland.workflow.selecting import Selection as Selection
from lowland.workflow.selecting import select_columns as select_columns
