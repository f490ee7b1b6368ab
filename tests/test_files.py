"""Arrays from files and back, and what happens with files that are not what they seem."""

import io
import os
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from proxlearn import files
from proxlearn.errors import InputError
from proxlearn.filenames import check_not_input
from proxlearn.files import check_folder, check_output, read_matrix, read_vector, write_array

A = np.arange(6.0).reshape(3, 2) - 2.5


def header(shape, dtype="<f8"):
    """The head of an .npy file that promises this shape, and nothing after it."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


def save(path, array):
    """Write `array` in the format that the name asks for."""
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez_compressed(path, array)
    elif path.suffix == ".csv":
        np.savetxt(path, array, delimiter=",", fmt="%.17g")
    else:
        scipy.io.mmwrite(path, np.atleast_2d(array), precision=17)
    return str(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".mtx", ".NPY"])
def test_every_format_gives_the_matrix_back(tmp_path, suffix):
    path = tmp_path / f"A{suffix}"
    if suffix == ".NPY":
        path.write_bytes((tmp_path / save(tmp_path / "A.npy", A)).read_bytes())
    else:
        save(path, A)
    np.testing.assert_array_equal(read_matrix(str(path)), A)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".mtx"])
def test_every_format_gives_a_vector_back(tmp_path, suffix):
    np.testing.assert_array_equal(read_vector(save(tmp_path / f"b{suffix}", A[:, 0])), A[:, 0])


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "i2", "?", "<f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_keeps_type_and_order(tmp_path, dtype, order):
    array = np.array([[1, 0, 1], [0, 1, 0]], dtype=dtype, order=order)
    read = read_matrix(save(tmp_path / "A.npy", array))
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)


def test_a_named_array_of_several(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, A=A, b=A[:, 0])
    np.testing.assert_array_equal(read_matrix(f"{path}:A"), A)
    np.testing.assert_array_equal(read_vector(f"{path}:b"), A[:, 0])
    with pytest.raises(InputError, match="2 arrays: A, b"):
        read_matrix(str(path))
    with pytest.raises(InputError, match="no array 'c' but: A, b"):
        read_matrix(f"{path}:c")


def test_sparse_stays_sparse(tmp_path):
    sparse = scipy.sparse.random(30, 20, density=0.1, rng=np.random.default_rng(0))
    scipy.io.mmwrite(tmp_path / "A.mtx", sparse, precision=17)
    read = read_matrix(str(tmp_path / "A.mtx"))
    assert scipy.sparse.issparse(read)
    np.testing.assert_array_equal(read.toarray(), sparse.toarray())
    scipy.io.mmwrite(tmp_path / "b.mtx", scipy.sparse.coo_array(A[:, :1]), precision=17)
    np.testing.assert_array_equal(read_vector(str(tmp_path / "b.mtx")), A[:, 0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("height,width\n1,2\n3,4", [[1, 2], [3, 4]]),
        ("\ufeff1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
        ("\n1e-3, -2\n\n 3 ,4\n\n", [[1e-3, -2], [3, 4]]),
        ("5", [[5]]),
    ],
)
def test_csv_dialects(tmp_path, text, expected):
    (tmp_path / "A.csv").write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_matrix(str(tmp_path / "A.csv")), expected)


CSV_FAULTS = {
    "string": ("1,2\n3,four\n", "'four' in row 2, column 2"),
    "half a header": ("x,1\n2,3\n", "'x' in row 1, column 1"),
    "after a header": ("x,y\n1,2\n\n3,\n", "'' in row 4, column 2"),
    "two headers": ("x,y\nu,v\n1,2\n", "'u' in row 2, column 1"),
    "ragged": ("1,2\n3\n", "1 columns in row 2 and 2 before"),
    "semicolons": ("1;2\n3;4\n", "'3;4' in row 2, column 1"),
    "only a header": ("x,y\n", "header and no numbers"),
    "blank": (" \n\n", "no numbers in it"),
    "complex": ("1,2+1j\n", "'2+1j' in row 1, column 2"),
    "comment": ("1,2\n# three\n", "'# three' in row 2, column 1"),
    "underscore": ("1,2\n1_0,3\n", "'1_0' in row 2, column 1"),
}


@pytest.mark.parametrize("case", CSV_FAULTS)
def test_faults_in_a_csv_are_located(tmp_path, case):
    text, message = CSV_FAULTS[case]
    (tmp_path / "A.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_matrix(str(tmp_path / "A.csv"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def zipped(content, name="A.npy"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


PICKLE = npy(np.array([{}, None], dtype=object))
BAD_FILES = {
    "empty.npy": (b"", "is empty"),
    "empty.csv": (b"", "is empty"),
    "noise.npy": (b"this is text", "truncated or no .npy"),
    "half.npy": (npy(A)[:-8], "promises shape (3, 2), 48 bytes, and 40 follow"),
    "head.npy": (npy(A)[:20], "truncated or no .npy"),
    "huge.npy": (header((10**9, 10**9)), "8000000000000000000 bytes, and 0 follow"),
    "overflow.npy": (header((2**62, 2**62)), "truncated"),
    "negative.npy": (header((-1, 4)), "truncated"),
    "unclosed.npy": (header((3, 2)).replace(b")", b" "), "truncated or no .npy"),
    "unclosed.npz": (zipped(header((3, 2)).replace(b")", b" ")), "truncated or no .npy"),
    "nested.npy": (header((3, 2)).replace(b"(3, 2)", b"(((((("), "truncated or no .npy"),
    "unhashable.npy": (header((3, 2)).replace(b"'shape'", b"[]     "), "truncated or no .npy"),
    "odd type.npy": (header((3, 2)).replace(b"'<f8'", b"{1: 2}"), "truncated or no .npy"),
    "no bytes.npy": (header((10**18,), "<U0"), "expected real numbers"),
    "long and empty.npy": (header((0, 10**30)), "truncated"),
    "object.npy": (PICKLE, "never unpickled"),
    "object.npz": (zipped(PICKLE), "never unpickled"),
    "text.npy": (npy(np.array(["a", "b"])), "expected real numbers"),
    "complex.npy": (npy(A + 1j), "expected real numbers"),
    "noise.npz": (b"PK\x03\x04 no more", "truncated or no .npz"),
    "half.npz": (zipped(npy(np.random.default_rng(0).random(999)))[:-400], "truncated"),
    "other.npz": (zipped(b"hello", "readme.txt"), "0 arrays: nothing"),
    "liar.npz": (zipped(header((10**6, 10**6))), "promises"),
    "binary.csv": (b"\xff\xfe\x00\x81", "not a text file"),
    "noise.mtx": (b"hello\n", "not a MatrixMarket file"),
    "huge.mtx": (b"%%MatrixMarket matrix array real general\n99999999 99999999\n1\n", "claims"),
    "tall.mtx": (
        b"%%MatrixMarket matrix coordinate real general\n9999999999 2 1\n1 1 1\n",
        "claims",
    ),
    "empty rows.mtx": (
        b"%%MatrixMarket matrix coordinate real general\n200000000 200000000 1\n1 1 1\n",
        "nearly all rows or columns are empty",
    ),
    "short.mtx": (b"%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 1\n", "not a Matrix"),
    "complex.mtx": (
        b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1 2\n",
        "expected real numbers",
    ),
    "A.txt": (b"1", "expected one of .npy, .npz, .csv, .mtx"),
    "A": (b"1", "expected one of"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_in_one_line(tmp_path, name):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_matrix(str(tmp_path / name))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_matrix(str(tmp_path / "no.npy"))
    with pytest.raises(InputError, match="does not exist"):
        read_matrix(str(tmp_path / "no.npz:key"))
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_matrix(str(tmp_path / "folder.npy"))


def test_a_zip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LIMIT", 2**20)
    np.savez_compressed(tmp_path / "bomb.npz", np.zeros(2**18))
    assert (tmp_path / "bomb.npz").stat().st_size < 2**12
    with pytest.raises(InputError, match="more than the limit"):
        read_matrix(str(tmp_path / "bomb.npz"))


@pytest.mark.parametrize("array", [A, A[:, 0], A[:, :1], A.astype("f4")], ids=str)
def test_written_arrays_read_back(tmp_path, array):
    write_array(str(tmp_path / "x.npy"), array)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), array)
    write_array(str(tmp_path / "x.csv"), array)
    read = read_vector(str(tmp_path / "x.csv"))
    np.testing.assert_array_equal(read, array.squeeze())
    assert sorted(os.listdir(tmp_path)) == ["x.csv", "x.npy"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    write_array(str(path), A)
    before = path.read_bytes()

    def interrupted(stream, *args, **options):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_array(str(path), 2 * A)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.npy"]


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(InputError, match="No space left"):
        write_array(str(tmp_path / "x.npy"), A)
    assert os.listdir(tmp_path) == []


def test_outputs_are_checked_beforehand(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "x.npy").mkdir()
    for path, message in [
        ("x.txt", "expected .npy or .csv"),
        ("x.npy", "is a folder"),
        ("file/x.npy", "cannot be written to"),
        ("file/deeper/x.npy", "cannot be written to"),
    ]:
        with pytest.raises(InputError, match=message):
            check_output(str(tmp_path / path))
    check_output(str(tmp_path / "new" / "x.npy"))
    assert sorted(os.listdir(tmp_path)) == ["file", "x.npy"]
    assert check_folder(tmp_path / "new") == tmp_path / "new"


def test_names_that_are_too_long_are_refused_beforehand(tmp_path):
    for path in ["x" * 300 + ".npy", "x" * 300 + "/x.npy", "new/" + "x" * 300 + "/deeper/x.npy"]:
        with pytest.raises(InputError, match=r"File name too long.*choose another") as caught:
            check_output(str(tmp_path / path))
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400
    with pytest.raises(InputError, match="File name too long"):
        read_matrix(str(tmp_path / ("x" * 300 + ".npy")))
    assert os.listdir(tmp_path) == []


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "A.npy")
    with pytest.raises(InputError, match="a device or a pipe; expected a file"):
        read_matrix(str(tmp_path / "A.npy"))


def test_an_output_that_is_an_input_needs_force(tmp_path):
    save(tmp_path / "A.npy", A)
    (tmp_path / "link.npy").symlink_to("A.npy")
    (tmp_path / "folder").mkdir()
    for out in ("A.npy", "link.npy", "folder/../A.npy"):
        with pytest.raises(InputError, match=r"is also the input .*--force"):
            check_not_input(str(tmp_path / out), [None, str(tmp_path / "A.npy")], force=False)
        check_not_input(str(tmp_path / out), [str(tmp_path / "A.npy")], force=True)
    check_not_input(str(tmp_path / "x.npy"), [str(tmp_path / "A.npy")], force=False)


def test_a_missing_folder_is_made(tmp_path):
    write_array(str(tmp_path / "new" / "deep" / "x.npy"), A)
    assert os.listdir(tmp_path / "new" / "deep") == ["x.npy"]


def test_a_disk_that_takes_a_part_of_an_array_is_one_line(tmp_path):
    resource = pytest.importorskip("resource", reason="Windows has no limits on the size of files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(InputError, match="cannot be written: No space left on the disk"):
            write_array(str(tmp_path / "x.npy"), np.ones(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not os.listdir(tmp_path)
