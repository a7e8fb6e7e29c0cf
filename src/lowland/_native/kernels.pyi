"""Types of the compiled kernels; `lowland._native` says what each computes."""

import numpy as np

ENTRY_BYTES_FLOAT32: int
ENTRY_BYTES_FLOAT64: int
PAIR_LANES: int
PANEL_WIDTH_FLOAT32: int
PANEL_WIDTH_FLOAT64: int
PATH_LANES: int
TILE_SIDE_FLOAT32: int
TILE_SIDE_FLOAT64: int

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def count_nested(width: int, depth: int, threads: int) -> int: ...
def all_finite(x: np.ndarray, threads: int, isa: str = "auto") -> bool: ...
def scatter_matrix(
    x: np.ndarray,
    shift: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def inner(
    a: np.ndarray,
    shift_a: np.ndarray,
    b: np.ndarray,
    shift_b: np.ndarray,
    symmetric: bool,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def project(
    x: np.ndarray,
    shift: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def sparse_times(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    v: np.ndarray,
    offset: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def pack_points(x: np.ndarray, panels: np.ndarray, threads: int, isa: str = "auto") -> None: ...
def join_rounds(
    panels: np.ndarray,
    halves: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    top_halves: np.ndarray,
    panels_per_block: int,
    rounding: float,
    entries: np.ndarray,
    counts: np.ndarray,
    thresholds: np.ndarray,
    keep: int,
    first: int,
    last: int,
    threads: int,
    isa: str = "auto",
    tails: np.ndarray | None = None,
    lead: int = 0,
) -> None: ...
def query_groups(
    query_panels: np.ndarray,
    query_halves: np.ndarray,
    panels: np.ndarray,
    halves: np.ndarray,
    groups: np.ndarray,
    range_starts: np.ndarray,
    ranges: np.ndarray,
    first: int,
    last: int,
    query_ids: np.ndarray,
    point_ids: np.ndarray,
    entries: np.ndarray,
    counts: np.ndarray,
    thresholds: np.ndarray,
    keep: int,
    threads: int,
    isa: str = "auto",
    query_tails: np.ndarray | None = None,
    tails: np.ndarray | None = None,
    lead: int = 0,
    rounding: float = 0.0,
) -> None: ...
def probe_lists(
    panels: np.ndarray,
    halves: np.ndarray,
    rows: np.ndarray,
    tasks: np.ndarray,
    ranges: np.ndarray,
    list_starts: np.ndarray,
    queries: np.ndarray,
    entries: np.ndarray,
    counts: np.ndarray,
    thresholds: np.ndarray,
    keep: int,
    threads: int,
    isa: str = "auto",
    tails: np.ndarray | None = None,
    lead: int = 0,
    rounding: float = 0.0,
    query_halves: np.ndarray | None = None,
    query_tails: np.ndarray | None = None,
) -> None: ...
def refine_neighbors(
    rows: np.ndarray,
    halves: np.ndarray,
    near: np.ndarray,
    entries: np.ndarray,
    counts: np.ndarray,
    thresholds: np.ndarray,
    keep: int,
    threads: int,
    isa: str = "auto",
) -> None: ...
def rerank(
    queries: np.ndarray,
    x: np.ndarray,
    query_rows: np.ndarray,
    entries: np.ndarray,
    counts: np.ndarray,
    thresholds: np.ndarray,
    keep: int,
    point_ids: np.ndarray,
    halves: np.ndarray,
    rounding: float,
    ids: np.ndarray,
    squares: np.ndarray,
    certain: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def complete(
    query_panels: np.ndarray,
    query_halves: np.ndarray,
    panels: np.ndarray,
    halves: np.ndarray,
    queries: np.ndarray,
    x: np.ndarray,
    rows: np.ndarray,
    query_rows: np.ndarray,
    point_ids: np.ndarray,
    self_join: bool,
    rounding: float,
    ids: np.ndarray,
    squares: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def patch_counts(
    members: np.ndarray,
    starts: np.ndarray,
    entries: np.ndarray,
    counts: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def patch_sums(
    members: np.ndarray,
    starts: np.ndarray,
    entries: np.ndarray,
    factors: np.ndarray,
    identity: float,
    sign: float,
    out_starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def shortest_paths(
    starts: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    sources: np.ndarray,
    rows: np.ndarray,
    place: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def calibrate(
    starts: np.ndarray,
    distances: np.ndarray,
    log_perplexity: float,
    probabilities: np.ndarray,
    betas: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def transpose(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    work: np.ndarray,
    out_starts: np.ndarray,
    out_columns: np.ndarray,
    out_values: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def union_starts(
    a_starts: np.ndarray,
    a_columns: np.ndarray,
    b_starts: np.ndarray,
    b_columns: np.ndarray,
    starts: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def union_sum(
    a_starts: np.ndarray,
    a_columns: np.ndarray,
    a_values: np.ndarray,
    b_starts: np.ndarray,
    b_columns: np.ndarray,
    b_values: np.ndarray,
    scale: float,
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def attract(
    starts: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    z: np.ndarray,
    y: np.ndarray,
    inverse_dof: float,
    forces: np.ndarray,
    sums: np.ndarray | None,
    threads: int,
    a: float = 0.0,
    b: float = 0.0,
    isa: str = "auto",
) -> None: ...
def permute_edges(
    starts: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    place: np.ndarray,
    new_starts: np.ndarray,
    new_columns: np.ndarray,
    new_weights: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def spread(
    y: np.ndarray,
    low: np.ndarray,
    pitch: float,
    charges: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def gather(
    y: np.ndarray,
    low: np.ndarray,
    pitch: float,
    own_mean: float,
    own_wave: float,
    field: np.ndarray,
    potential: np.ndarray,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def fourier_order(order: np.ndarray, isa: str = "auto") -> None: ...
def convolve(
    charges: np.ndarray,
    spectrum: np.ndarray,
    wide: int,
    field: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def settle_rows(
    ids: np.ndarray,
    weights: np.ndarray,
    y: np.ndarray,
    inverse_dof: float,
    mean_potential: float,
    low: np.ndarray,
    pitch: float,
    field: np.ndarray,
    steps: int,
    close: float,
    z: np.ndarray,
    threads: int,
    a: float = 0.0,
    b: float = 0.0,
    isa: str = "auto",
) -> None: ...
def descend(
    attraction: np.ndarray,
    repulsion: np.ndarray,
    exaggeration: float,
    total: float,
    learning_rate: float,
    momentum: float,
    longest: float,
    y: np.ndarray,
    velocity: np.ndarray,
    gains: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def fuzzy_weights(
    distances: np.ndarray,
    target: float,
    connectivity: float,
    mean_distance: float,
    weights: np.ndarray,
    nearest: np.ndarray,
    widths: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def fuzzy_repel(
    points: np.ndarray,
    y: np.ndarray,
    same: bool,
    a: float,
    b: float,
    soft: float,
    heights: np.ndarray,
    first: int,
    per_octave: int,
    potential: np.ndarray | None,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def fuzzy_sample(
    y: np.ndarray,
    seed: int,
    draws: int,
    a: float,
    b: float,
    soft: float,
    heights: np.ndarray,
    first: int,
    per_octave: int,
    potential: np.ndarray | None,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def map_radii(
    starts: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    y: np.ndarray,
    a: float,
    b: float,
    sums: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def radius_forces(
    starts: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    y: np.ndarray,
    a: float,
    b: float,
    sums: np.ndarray,
    slopes: np.ndarray,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def repel_pairs(
    y: np.ndarray,
    gaussian: bool,
    dof: float,
    weights: np.ndarray,
    potential: np.ndarray,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def repel_from(
    y_new: np.ndarray,
    y: np.ndarray,
    gaussian: bool,
    dof: float,
    potential: np.ndarray,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def repel_tree(
    y: np.ndarray,
    dof: float,
    angle: float,
    potential: np.ndarray,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def count_ranks(
    panels: np.ndarray,
    halves: np.ndarray,
    x: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    partners: np.ndarray,
    rounding: float,
    ranks: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def count_nearer(
    panels: np.ndarray,
    halves: np.ndarray,
    x: np.ndarray,
    query_panels: np.ndarray,
    query_halves: np.ndarray,
    queries: np.ndarray,
    own: np.ndarray,
    starts: np.ndarray,
    squares: np.ndarray,
    ties: np.ndarray,
    rounding: float,
    counts: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def pair_squares(
    a: np.ndarray, b: np.ndarray, out: np.ndarray, threads: int, isa: str = "auto"
) -> None: ...
def sort_rows(
    values: np.ndarray, inverse: bool, out: np.ndarray, threads: int, isa: str = "auto"
) -> None: ...
def mean_cosines(
    starts: np.ndarray,
    columns: np.ndarray,
    lengths: np.ndarray,
    k: int,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def mid_ranks(values: np.ndarray, out: np.ndarray, threads: int, isa: str = "auto") -> None: ...
def distance_rows(
    panels: np.ndarray,
    rows: np.ndarray,
    root: bool,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def add_column_sums(
    a: np.ndarray,
    b: np.ndarray,
    first: int,
    scale: float,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def distance_sums(
    a: np.ndarray,
    b: np.ndarray,
    own: np.ndarray,
    scale: float,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def kernel_rows(
    rows: np.ndarray,
    points: np.ndarray,
    kind: int,
    offset: float,
    degree: int,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def kernel_times(
    points: np.ndarray,
    kind: int,
    offset: float,
    degree: int,
    tiles: np.ndarray,
    filled: bool,
    v: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def symmetric_times(
    tiles: np.ndarray, v: np.ndarray, out: np.ndarray, threads: int, isa: str = "auto"
) -> None: ...
def class_digammas(
    values: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    k: int,
    psi: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def pair_digammas(
    x: np.ndarray,
    y_of_x: np.ndarray,
    y_rank: np.ndarray,
    y: np.ndarray,
    x_of_y: np.ndarray,
    k: int,
    psi: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def manhattan_rows(
    panels: np.ndarray, rows: np.ndarray, out: np.ndarray, threads: int, isa: str = "auto"
) -> None: ...
def local_stress_rows(
    z: np.ndarray,
    y: np.ndarray,
    delta: np.ndarray,
    radii_z: np.ndarray,
    radii_y: np.ndarray,
    kind: int,
    tradeoff: float,
    center: float,
    width: float,
    rounding: float,
    stress: np.ndarray,
    potential: np.ndarray,
    degrees: np.ndarray,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def stress_rows(
    z: np.ndarray,
    y: np.ndarray,
    delta: np.ndarray,
    weights: np.ndarray,
    power: int,
    stress: np.ndarray,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def stress_pairs(
    y: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    delta: np.ndarray,
    weights: np.ndarray,
    stress: np.ndarray,
    forces: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def pair_distances(
    y: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def pool_adjacent(
    d: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray,
    fit: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def gtm_sums(
    x: np.ndarray,
    mean: np.ndarray,
    nodes: np.ndarray,
    beta: float,
    missing: bool,
    logs: np.ndarray,
    sums: np.ndarray,
    masses: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def gtm_posteriors(
    x: np.ndarray,
    mean: np.ndarray,
    nodes: np.ndarray,
    beta: float,
    missing: bool,
    logs: np.ndarray,
    posteriors: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def covariance_matrix(
    u: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    shape: str,
    variance: float,
    bias: float,
    out: np.ndarray,
    radial: np.ndarray,
    upper: bool,
    threads: int,
    isa: str = "auto",
) -> None: ...
def covariance_slopes(
    u: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    shape: str,
    g: np.ndarray,
    by_row: np.ndarray,
    by_column: np.ndarray,
    upper: bool,
    threads: int,
    isa: str = "auto",
) -> None: ...
def ppca_sums(
    x: np.ndarray,
    mean: np.ndarray,
    weights: np.ndarray,
    noise: float,
    rare: np.ndarray,
    logs: np.ndarray,
    squares: np.ndarray,
    products: np.ndarray,
    grams: np.ndarray,
    total: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def ppca_posteriors(
    x: np.ndarray,
    mean: np.ndarray,
    weights: np.ndarray,
    noise: float,
    places: np.ndarray,
    logs: np.ndarray,
    covariances: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def gaussian_field(
    u: np.ndarray,
    b: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
    sums: np.ndarray,
    pulls: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def network_forward(
    sizes: np.ndarray,
    activations: np.ndarray,
    tied: bool,
    weights: np.ndarray,
    x: np.ndarray,
    first_kept: int,
    values: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def network_backward(
    sizes: np.ndarray,
    activations: np.ndarray,
    tied: bool,
    weights: np.ndarray,
    x: np.ndarray,
    values: np.ndarray,
    slope: np.ndarray,
    gradient: np.ndarray,
    slope_x: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def network_train(
    sizes: np.ndarray,
    activations: np.ndarray,
    tied: bool,
    weights: np.ndarray,
    means: np.ndarray,
    squares: np.ndarray,
    inputs: np.ndarray,
    targets: np.ndarray,
    order: np.ndarray,
    batch: int,
    rates: np.ndarray,
    steps_before: int,
    decay: float,
    sparsity: float,
    code: int,
    tail: float,
    errors: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def project_on_polyline(
    x: np.ndarray,
    knots: np.ndarray,
    before: float,
    after: float,
    segments: np.ndarray,
    along: np.ndarray,
    squares: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def project_on_surface(
    x: np.ndarray,
    near: np.ndarray,
    nodes: np.ndarray,
    simplices: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    found: np.ndarray,
    weights: np.ndarray,
    squares: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def torus_energy(
    z: np.ndarray,
    y: np.ndarray,
    sides: np.ndarray,
    delta: np.ndarray,
    rigidity: float,
    nearest: float,
    energy: np.ndarray,
    forces: np.ndarray,
    stiffness: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def rank_forces(
    y: np.ndarray,
    points: np.ndarray,
    ties: np.ndarray,
    k: int,
    push: float,
    even: float,
    spacing: float,
    reach: np.ndarray,
    stress: np.ndarray,
    forces: np.ndarray,
    weights: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def rank_heights(
    y: np.ndarray,
    points: np.ndarray,
    ties: np.ndarray,
    k: int,
    z: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def rank_places(
    y: np.ndarray,
    points: np.ndarray,
    ties: np.ndarray,
    k: int,
    equal: np.ndarray,
    z: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def unit_sums(
    z: np.ndarray,
    y: np.ndarray,
    distances: np.ndarray,
    units: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def angle_partners(
    z: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    x: np.ndarray,
    fitted_starts: np.ndarray,
    fitted_ends: np.ndarray,
    own: bool,
    first: int,
    partner: np.ndarray,
    sums: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def sculpt_terms(
    starts: np.ndarray,
    ends: np.ndarray,
    partner: np.ndarray,
    sums: np.ndarray,
    kept: np.ndarray,
    width: float,
    scale: float,
    z: np.ndarray,
    y: np.ndarray,
    terms: np.ndarray,
    errors: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def sculpt_pass(
    starts: np.ndarray,
    ends: np.ndarray,
    partner: np.ndarray,
    sums: np.ndarray,
    kept: np.ndarray,
    width: float,
    scale: float,
    partner_starts: np.ndarray,
    partner_edges: np.ndarray,
    corner_starts: np.ndarray,
    corner_edges: np.ndarray,
    rows: np.ndarray,
    seeds: np.ndarray,
    fixed: np.ndarray,
    steps: np.ndarray,
    adjusted: float,
    sweeps: int,
    y: np.ndarray,
    errors: np.ndarray,
    isa: str = "auto",
) -> int: ...
def sculpt_places(
    starts: np.ndarray,
    ends: np.ndarray,
    partner: np.ndarray,
    sums: np.ndarray,
    kept: np.ndarray,
    width: float,
    y: np.ndarray,
    steps: np.ndarray,
    least: float,
    places: np.ndarray,
    errors: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def nearest_units(
    x: np.ndarray,
    units: np.ndarray,
    shift: np.ndarray,
    missing: bool,
    ids: np.ndarray,
    squares: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def sum_by_unit(
    x: np.ndarray,
    nearest: np.ndarray,
    missing: bool,
    counts: np.ndarray,
    sums: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def squares_to_units(
    x: np.ndarray,
    units: np.ndarray,
    nearest: np.ndarray,
    lists: np.ndarray,
    squares: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def som_steps(
    rows: np.ndarray,
    rates: np.ndarray,
    neighborhood: np.ndarray,
    codebook: np.ndarray,
    isa: str = "auto",
) -> None: ...
def draw_groups(
    first: int, n: int, seed: int, groups: int, out: np.ndarray, threads: int, isa: str = "auto"
) -> None: ...
def draw_far(
    near: np.ndarray, seed: int, out: np.ndarray, threads: int, isa: str = "auto"
) -> None: ...
def redraw_far(
    near: np.ndarray,
    y: np.ndarray,
    reach: float,
    seed: int,
    far: np.ndarray,
    within: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def listed_squares(
    x: np.ndarray, first: int, ids: np.ndarray, out: np.ndarray, threads: int, isa: str = "auto"
) -> None: ...
def pair_starts(ids: np.ndarray, starts: np.ndarray, threads: int, isa: str = "auto") -> None: ...
def pair_lists(
    ids: np.ndarray, starts: np.ndarray, columns: np.ndarray, threads: int, isa: str = "auto"
) -> None: ...
def pair_forces(
    near_starts: np.ndarray,
    near: np.ndarray,
    mid_starts: np.ndarray,
    mid: np.ndarray,
    far_starts: np.ndarray,
    far: np.ndarray,
    weights: np.ndarray,
    y: np.ndarray,
    gradient: np.ndarray,
    losses: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def pair_step(
    near_starts: np.ndarray,
    near: np.ndarray,
    mid_starts: np.ndarray,
    mid: np.ndarray,
    far_starts: np.ndarray,
    far: np.ndarray,
    weights: np.ndarray,
    rate: float,
    y: np.ndarray,
    stepped: np.ndarray,
    means: np.ndarray,
    squares: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def settle_pairs(
    ids: np.ndarray,
    y: np.ndarray,
    local: float,
    far: float,
    reach: float,
    low: np.ndarray,
    pitch: float,
    field: np.ndarray | None,
    steps: int,
    close: float,
    z: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
