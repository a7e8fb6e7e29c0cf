"""Model files: what goes in comes out, and nothing but a model file is believed."""

import io
import json
import math
import os
import struct
import warnings
import zipfile
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import lowland
from lowland._base.chain import Chain
from lowland._base.errors import MemoryLimitError, ModelFileError, ParameterError
from lowland._base.models import archive, codec
from lowland._base.models.codec import Model, read_model, write_model
from support.cases import each

PARAMS = {"n_components": 2, "solver": "auto", "random_state": None}
STATE = {
    "components_": np.arange(6.0).reshape(2, 3),
    "names_": np.array(["a", "bb", "ü\0"], dtype=object),
    "graph_": scipy.sparse.random_array((4, 5), density=0.4, format="csr", rng=0),
    "loss_": np.float32(0.1),
    "history_": [math.nan, (1, -math.inf)],
}


def same(a, b):
    """Equal in type, dtype and value, with nan equal to itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if scipy.sparse.issparse(a):
        parts = ("shape", "data", "indices", "indptr")
        return all(same(getattr(a, part), getattr(b, part)) for part in parts)
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and repr(a.tolist()) == repr(b.tolist())
    return repr(a) == repr(b)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.lowland"


def round_trip(path, value):
    write_model(path, "PCA", {"p": value}, {"s_": value})
    model = read_model(path)
    assert same(model.params["p"], model.state["s_"])
    return model.state["s_"]


def test_a_model_comes_back_as_it_was(path):
    write_model(path, "PCA", PARAMS, STATE)
    model = read_model(path)
    assert isinstance(model, Model)
    assert model.class_name == "PCA"
    assert same(model.params, dict(sorted(PARAMS.items())))
    assert same(model.state, STATE)
    assert model.lowland_version


VALUES = [
    None,
    True,
    0,
    -(10**30),
    0.1,
    -0.0,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
    "",
    "ü\ud800\n",
    [],
    (),
    [1, (2.0, "3"), [None]],
    {},
    {"$array": "x", "b": {"ö": (math.nan,)}},
    np.bool_(True),
    np.int8(-3),
    np.uint64(2**64 - 1),
    np.float16(0.1),
    np.float32(0.1),
    np.float64(math.nan),
    np.complex64(1 - 2j),
    np.complex128(complex(math.inf, -0.0)),
    np.str_("x"),
]


@each("value", VALUES, ids=repr)
def test_a_plain_value_keeps_its_type_and_value(path, value):
    assert same(round_trip(path, value), value)


DTYPES = [
    "?",
    "i1",
    "<i2",
    ">i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "f2",
    "f4",
    ">f8",
    "c8",
    "c16",
    "<U3",
]


@each("dtype", DTYPES)
@each("shape", [(), (0,), (3,), (0, 4), (2, 3), (2, 1, 3)])
def test_an_array_keeps_its_dtype_shape_and_values(path, dtype, shape):
    array = (np.arange(math.prod(shape)) % 2).reshape(shape).astype(dtype)
    assert same(round_trip(path, array), array)


def test_the_order_of_an_array_in_memory_is_kept(path):
    assert round_trip(path, np.asfortranarray(np.eye(3)[:, :2])).flags.f_contiguous
    assert round_trip(path, np.eye(3)[:, :2]).flags.c_contiguous


def test_an_array_longer_than_one_chunk_and_a_strided_one_come_back(path):
    array = np.arange(300_000.0)
    assert same(round_trip(path, array), array)
    assert same(round_trip(path, array[::-3]), array[::-3])


def test_a_loaded_array_can_be_written_to(path):
    array = round_trip(path, np.zeros(3))
    array[0] = 1
    assert array[0] == 1


@pytest.mark.parametrize("shape", [(0,), (4,), (2, 2)])
def test_an_array_of_names_comes_back_as_objects(path, shape):
    names = np.array(["a", "", "ü\ud800", "d\0"], dtype=object)[: math.prod(shape)].reshape(shape)
    assert same(round_trip(path, names), names)


@each("kind", ["csr_matrix", "csc_matrix", "csr_array", "csc_array"])
@each("shape", [(4, 6), (0, 3), (3, 0)])
def test_a_sparse_matrix_keeps_its_class_and_arrays(path, kind, shape):
    dense = (np.arange(math.prod(shape)) % 3).reshape(shape).astype(np.float32)
    matrix = getattr(scipy.sparse, kind)(dense)
    assert same(round_trip(path, matrix), matrix)


def test_wide_sparse_indices_stay_wide(path):
    matrix = scipy.sparse.csr_array(np.eye(3))
    matrix.indices, matrix.indptr = matrix.indices.astype("i8"), matrix.indptr.astype("i8")
    assert same(round_trip(path, matrix), matrix)


def test_a_member_is_plain_npy_that_numpy_reads(path):
    write_model(path, "PCA", {}, STATE)
    with zipfile.ZipFile(path) as opened:
        stored = np.load(io.BytesIO(opened.read("arrays/components_.npy")), allow_pickle=False)
    assert same(stored, STATE["components_"])


def test_a_member_written_by_numpy_is_read(path):
    def replace(members):
        buffer = io.BytesIO()
        np.save(buffer, np.full((2, 3), 7.0))
        members["arrays/components_.npy"] = buffer.getvalue()

    tamper(path, replace)
    assert same(read_model(path).state["components_"], np.full((2, 3), 7.0))


def test_equal_models_are_equal_files(tmp_path):
    write_model(tmp_path / "a", "PCA", PARAMS, STATE)
    write_model(
        tmp_path / "b", "PCA", dict(reversed(PARAMS.items())), dict(reversed(STATE.items()))
    )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_manifest_is_strict_json(path):
    write_model(path, "PCA", {"tol": math.nan}, {"s_": [math.inf]})
    with zipfile.ZipFile(path) as opened:
        json.loads(opened.read("manifest.json"), parse_constant=pytest.fail)


def test_names_that_collide_get_members_of_their_own(path):
    value = {
        "a.b": np.zeros(1),
        "a": {"b": np.ones(1)},
        "a/b": np.full(1, 2.0),
        "a b": np.full(1, 3.0),
    }
    assert same(round_trip(path, value), value)


class Subclass(dict):
    pass


UNSUPPORTED = [
    len,
    object(),
    np.random.default_rng(0),
    {1, 2},
    b"bytes",
    1j,
    Subclass(),
    {1: 2},
    np.longdouble(1),
    np.zeros(2, dtype=np.longdouble),
    np.array([1, "a"], dtype=object),
    np.zeros(2, dtype="datetime64[s]"),
    np.zeros(2, dtype=[("a", "f8")]),
    np.ma.masked_array([1.0], mask=[True]),
    np.float64,
    scipy.sparse.coo_array(np.eye(2)),
]


@each("value", UNSUPPORTED, ids=lambda value: type(value).__name__)
def test_what_cannot_be_stored_is_refused_by_name_and_no_file_appears(path, value):
    with pytest.raises(ModelFileError, match="graph_") as error:
        write_model(path, "PCA", {}, {"graph_": [value]})
    assert str(error.value).startswith(f"{path}: ")
    assert os.listdir(path.parent) == []


def test_a_list_inside_itself_is_refused(path):
    loop = []
    loop.append(loop)
    with pytest.raises(ModelFileError, match=r"loop_.* levels deep"):
        write_model(path, "PCA", {}, {"loop_": loop})


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    write_model(path, "PCA", PARAMS, STATE)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "write_array", full)
    with pytest.raises(ModelFileError, match="No space left on device"):
        write_model(path, "PCA", PARAMS, {"x_": np.zeros(3)})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    write_model(path, "PCA", PARAMS, STATE)
    before = path.read_bytes()

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_model(path, "PCA", PARAMS, {})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelFileError, match="nowhere does not exist; create it"):
        write_model(tmp_path / "nowhere" / "m.lowland", "PCA", {}, {})


def test_a_folder_is_not_overwritten(tmp_path):
    with pytest.raises(ModelFileError, match="is a folder"):
        write_model(tmp_path, "PCA", {}, {})


def test_a_manifest_that_could_not_be_read_back_is_not_written(path, monkeypatch):
    with pytest.raises(ModelFileError, match="too long"):
        write_model(path, "PCA", {}, {"text_": "x" * (archive.MAX_MANIFEST + 1)})
    assert not path.exists()


def build(path, members, **options):
    """A zip of ``members`` (a list of pairs may repeat a name), written as it is."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", **options) as opened:
        warnings.simplefilter("ignore")  # zipfile itself warns about repeated names
        for name, content in members.items() if isinstance(members, dict) else members:
            opened.writestr(zipfile.ZipInfo(name), content, options.get("compression"))


def tamper(path, change):
    """A valid model file whose members ``change`` edits; checksums are made to fit again."""
    write_model(path, "PCA", PARAMS, STATE)
    with zipfile.ZipFile(path) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    build(path, change(members) or members)


def tamper_manifest(path, change):
    def edit(members):
        manifest = json.loads(members["manifest.json"])
        members["manifest.json"] = json.dumps(change(manifest) or manifest).encode()

    tamper(path, edit)


def assert_refused(path, message):
    with pytest.raises(ModelFileError, match=message) as error:
        read_model(path)
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert text.endswith(".")
    assert "\n" not in text


def test_the_tampering_of_these_tests_is_harmless_by_itself(path):
    tamper(path, lambda members: None)
    assert same(read_model(path).state, STATE)
    tamper_manifest(path, lambda manifest: None)
    assert same(read_model(path).state, STATE)


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path):
    assert_refused(tmp_path / "none", "does not exist")
    assert_refused(tmp_path, "is a folder")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert_refused(tmp_path / "pipe", "not a regular file")


@each("content", [b"", b"x" * 1000, b"PK\x05\x06" + b"\0" * 18, b"PK\x05\x06" + b"\xff" * 18])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    assert_refused(path, "not a lowland model file")


def test_a_damaged_byte_in_an_array_is_found_by_its_checksum(path):
    write_model(path, "PCA", PARAMS, STATE)
    content = bytearray(path.read_bytes())
    content[content.index(struct.pack("<d", 5.0))] ^= 1
    path.write_bytes(content)
    assert_refused(path, "is damaged.*CRC")


def test_a_compressed_member_is_refused(path):
    build(path, {"manifest.json": b"{}" + b" " * 10**6}, compression=zipfile.ZIP_DEFLATED)
    assert_refused(path, "compressed")


def test_members_that_claim_more_than_the_file_are_refused(path):
    write_model(path, "PCA", PARAMS, STATE)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 20 : entry + 28] = struct.pack("<II", 2**31, 2**31)
    path.write_bytes(content)
    assert_refused(path, "more bytes than the file has")


def test_an_encrypted_member_is_refused(path):
    write_model(path, "PCA", PARAMS, STATE)
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert_refused(path, "encrypted")


@each(
    "name",
    [
        "../x.npy",
        "/arrays/x.npy",
        "arrays/../x.npy",
        "arrays\\x.npy",
        "arrays/x.py",
        "x",
        "arrays/ü.npy",
    ],
)
def test_a_member_with_a_foreign_name_is_refused(path, name):
    tamper(path, lambda members: members.update({name: b""}))
    assert_refused(path, "forbidden name")


def test_missing_extra_and_repeated_members_are_refused(path):
    tamper(path, lambda members: members.pop("arrays/components_.npy") and None)
    assert_refused(path, "lacks the member 'arrays/components_.npy'")
    tamper(path, lambda members: members.update({"arrays/more.npy": b"x"}))
    assert_refused(path, r"'arrays/more\.npy' that its manifest does not declare")
    tamper(path, lambda members: [*members.items(), ("manifest.json", b"{}")])
    assert_refused(path, "two members named 'manifest.json'")
    tamper(path, lambda members: members.pop("manifest.json") and None)
    assert_refused(path, "no manifest.json")


@each(
    "text",
    [b"", b"\xff\xfe", b"{", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 100_000, b"9" * 5000],
)
def test_a_manifest_that_is_not_strict_json_is_refused(path, text):
    tamper(path, lambda members: members.update({"manifest.json": text}))
    assert_refused(path, "not valid JSON")


def test_a_manifest_beyond_any_sense_is_refused_unread(path):
    big = b" " * (archive.MAX_MANIFEST + 1)
    tamper(path, lambda members: members.update({"manifest.json": big}))
    assert_refused(path, "manifest.json of more than")


def entry(manifest, **changes):
    return {**manifest, **changes}


@each(
    ("changes", "message"),
    [
        ({"format": "other"}, "not a lowland model file"),
        ({"format_version": 1}, "unreleased lowland.*fit the model again"),
        ({"format_version": 3}, "newer lowland.*upgrade"),
        ({"format_version": True}, "impossible format version True"),
        ({"format_version": 0}, "impossible format version 0"),
        ({"more": 1}, "unknown entry, 'more'"),
        ({"class": 1}, "'class' is not a str"),
        ({"params": []}, "'params' is not a dict"),
        ({"arrays": []}, "'arrays' is not a dict"),
        (
            {"params": {"x": {"$array": "arrays/none.npy"}}},
            "'x' is malformed.*missing or used twice",
        ),
        ({"params": {"x": {"$array": "arrays/components_.npy"}}}, "'components_'.*used twice"),
        ({"state": {}}, "that nothing refers to"),
        ({"params": {"x": {"$call": "os.system"}}}, "'x' is malformed"),
        ({"params": {"x": {}}}, "'x' is malformed"),
        ({"params": {"x": {"$float": "1"}}}, "'x' is malformed"),
        ({"params": {"x": {"$tuple": "ab"}}}, "'x' is malformed"),
        ({"params": {"x": {"$dict": []}}}, "'x' is malformed"),
        ({"params": {"x": {"$scalar": ["int8", 300]}}}, "'x' is malformed"),
        ({"params": {"x": {"$scalar": ["int8", 1.5]}}}, "'x' is malformed"),
        ({"params": {"x": {"$scalar": ["float32", 1e300]}}}, "'x' is malformed"),
        ({"params": {"x": {"$scalar": ["float32", 1.0, 2.0]}}}, "'x' is malformed"),
        ({"params": {"x": {"$scalar": ["object", 1]}}}, "'x' is malformed"),
        ({"params": {"x": {"$scalar": ["str", 1]}}}, "'x' is malformed"),
        ({"params": {"x": {"$scalar": []}}}, "'x' is malformed"),
        ({"params": {"x": {"$sparse": {}}}}, "'x' is malformed"),
    ],
    ids=str,
)
def test_a_manifest_of_another_structure_is_refused(path, changes, message):
    tamper_manifest(path, partial(entry, **changes))
    assert_refused(path, message)


def test_a_manifest_nested_too_deep_is_refused(path):
    deep = 1
    for _ in range(codec.MAX_DEPTH + 1):
        deep = [deep]
    tamper_manifest(path, lambda manifest: entry(manifest, params={"x": deep}))
    assert_refused(path, "'x' is malformed.*levels")


@each(
    ("changes", "message"),
    [
        ({"dtype": "|O"}, "not a plain number"),
        ({"dtype": "<f16"}, "not a plain number"),
        ({"dtype": 3}, "not a plain number"),
        ({"shape": [-1, 3]}, "integers >= 0"),
        ({"shape": [True, 6]}, "integers >= 0"),
        ({"shape": "23"}, "list"),
        ({"shape": [1] * 33}, "at most 32"),
        ({"more": 1}, "exactly a dtype and a shape"),
        ({"shape": [2**40, 2**40]}, "smaller than its shape"),
        ({"shape": [3, 2]}, "disagrees with the manifest"),
        ({"dtype": "<i8"}, "disagrees with the manifest"),
        ({"shape": [0, 2**62, 2**62]}, "disagrees with the manifest"),
    ],
    ids=str,
)
def test_a_misdeclared_array_is_refused_without_allocation(path, changes, message):
    def change(manifest):
        manifest["arrays"]["arrays/components_.npy"].update(changes)

    tamper_manifest(path, change)
    assert_refused(path, message)


def with_header(old, new):
    def change(members):
        content = members["arrays/components_.npy"]
        assert old in content
        members["arrays/components_.npy"] = content.replace(old, new)

    return change


@each(
    ("old", "new", "message"),
    [
        (b"\x93NUMPY\x01", b"\x93NUMPY\x03", "format version 1.0"),
        (b"\x93NUMPY", b"\x93NUMPX", "format version 1.0"),
        (b"<f8", b"|O8", "disagrees with the manifest"),
        (b"(2, 3)", b"(3, 2)", "disagrees with the manifest"),
        (b"False", b"0 < 1", "disagrees with the manifest"),
        (struct.pack("<d", 5.0), b"", "smaller than its shape|disagrees with its shape"),
        (struct.pack("<d", 5.0), b"x" * 16, "disagrees with its shape"),
    ],
)
def test_an_array_whose_bytes_disagree_is_refused(path, old, new, message):
    tamper(path, with_header(old, new))
    assert_refused(path, message)


@pytest.mark.parametrize(
    ("array", "bad"), [(np.array([True]), b"\x02"), (np.array(["a"]), b"\xff" * 4)]
)
def test_bytes_that_no_array_can_hold_are_refused(path, array, bad):
    write_model(path, "PCA", {}, {"x_": array})
    with zipfile.ZipFile(path) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    members["arrays/x_.npy"] = members["arrays/x_.npy"][: -len(bad)] + bad
    build(path, members)
    assert_refused(path, "holds a truth value|holds text")


@each(
    ("part", "values", "message"),
    [
        ("indices", np.int32([0, 1]), None),
        ("indices", np.int32([0, 3]), "index outside the matrix"),
        ("indices", np.int32([0, 9]), "index outside the matrix"),
        ("indices", np.int32([0, -1]), "index outside the matrix"),
        ("indices", np.int64([0, 1]), "indices of a wrong dtype"),
        ("indptr", np.int32([0, 2, 1, 2]), "index pointer that does not run"),
        ("indptr", np.int32([1, 1, 1, 2]), "index pointer that does not run"),
        ("indptr", np.int32([0, 1, 2, 3]), "index pointer that does not run"),
        ("indptr", np.int32([0, 1, 2]), "parts of wrong sizes"),
    ],
)
def test_a_sparse_matrix_with_wild_indices_is_refused(path, part, values, message):
    matrix = scipy.sparse.csr_array(([1.0, 2.0], ([0, 2], [0, 1])), shape=(3, 3))
    matrix.indices, matrix.indptr = (np.int32(p) for p in (matrix.indices, matrix.indptr))
    setattr(matrix, part, values)
    members = {}
    encoder = codec.Encoder()
    # nnz follows the index pointer, so the parts are encoded as they are
    code = encoder._sparse(SparseParts(matrix), "x_")
    for name, array in encoder.arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        members[name] = buffer.getvalue()
    manifest = {
        "format": "lowland-model",
        "format_version": 2,
        "lowland_version": "1",
        "class": "PCA",
        "params": {},
        "state": {"x_": code},
        "arrays": {
            n: {"dtype": a.dtype.str, "shape": list(a.shape)} for n, a in encoder.arrays.items()
        },
    }
    build(path, {"manifest.json": json.dumps(manifest), **members})
    if message is None:  # the same way to a file that is in order
        assert read_model(path).state["x_"].toarray()[2].tolist() == [0.0, 2.0, 0.0]
    else:
        assert_refused(path, f"'x_' is malformed.*sparse {message}")


class csr_array:  # noqa: N801
    """Looks like a sparse array to the encoder, which goes by the name of its class."""

    format, ndim, nnz, dtype = "csr", 2, 2, np.dtype(float)

    def __init__(self, matrix):
        self.shape, self.data = matrix.shape, matrix.data
        self.indices, self.indptr = matrix.indices, matrix.indptr


SparseParts = csr_array


@each("length", [-1, 0, 99, 2**62])
def test_names_that_do_not_add_up_are_refused(path, length):
    def change(members):
        content = members["arrays/names_.lengths.npy"]
        members["arrays/names_.lengths.npy"] = content[:-8] + struct.pack("<q", length)

    tamper(path, change)
    assert_refused(path, "'names_' is malformed.*add up")


def test_a_model_larger_than_the_memory_limit_is_refused_as_such(path, monkeypatch):
    write_model(path, "PCA", PARAMS, STATE)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100")
    with pytest.raises(MemoryLimitError, match=r"m\.lowland: loading it needs"):
        read_model(path)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "much")
    with pytest.raises(ParameterError, match="LOWLAND_MEMORY_LIMIT"):
        read_model(path)


def test_reading_changes_neither_the_file_nor_its_folder(path):
    write_model(path, "PCA", PARAMS, STATE)
    before = (path.read_bytes(), os.listdir(path.parent))
    read_model(path)
    assert (path.read_bytes(), os.listdir(path.parent)) == before


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "m.lowland"
    write_model(path, "PCA", PARAMS, STATE)
    return path.read_bytes(), path.with_name("damaged.lowland")


fuzz = settings(max_examples=300, deadline=None, derandomize=True, database=None)


@fuzz
@given(data=st.data())
def test_damage_anywhere_is_refused_or_harmless(valid, data):
    content, path = valid
    damaged = bytearray(content)
    places = st.integers(0, len(content) - 1) | st.integers(1, 700).map(
        lambda back: len(content) - back
    )
    for place in data.draw(st.lists(places, max_size=4)):
        damaged[place] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()):
        start, end = sorted([data.draw(places), data.draw(places)])
        del damaged[start:end]
    path.write_bytes(damaged)
    try:
        model = read_model(path)
    except ModelFileError:
        return
    assert model.class_name == "PCA"
    assert same(model.params, dict(sorted(PARAMS.items())))
    assert same(model.state, STATE)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["$float", "$tuple", "$dict", "$scalar", "$array", "$strings", "$sparse", "x"]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=8,
)


@fuzz
@given(
    value=json_values, key=st.sampled_from(["params", "state", "arrays", "class", "format_version"])
)
def test_any_json_in_the_manifest_loads_or_is_refused(valid, value, key):
    path = valid[1]
    manifest = {
        "format": "lowland-model",
        "format_version": 2,
        "lowland_version": "1",
        "class": "PCA",
        "params": {},
        "state": {},
        "arrays": {},
    }
    nested = {"x": value} if key in ("params", "state", "arrays") else value
    build(path, {"manifest.json": json.dumps({**manifest, key: nested})})
    try:
        model = read_model(path)
    except ModelFileError:
        return
    assert set(model.params) | set(model.state) <= {"x"}


def test_a_metric_that_is_a_function_is_refused_when_saved(tmp_path):
    model = lowland.MDS(metric=lambda a, b: abs(a - b).sum()).fit(np.arange(12.0).reshape(4, 3))
    with pytest.raises(ModelFileError, match=r"metric=.* is a function"):
        model.save(tmp_path / "m.lowland")
    assert not (tmp_path / "m.lowland").exists()


def test_steps_of_a_chain_that_do_not_fit_are_refused(tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 5))
    first, last = lowland.PCA(3).fit(X), lowland.PCA(2).fit(X)
    Chain([first, last]).save(tmp_path / "m.lowland")
    with pytest.raises(ModelFileError, match="PCA gives 3 columns, PCA takes 5"):
        lowland.load(tmp_path / "m.lowland")
