"""Detection on a Mac, from texts in the format of its tools. None of them was recorded on a Mac by this project."""

import sys

import pytest
from triton_metal.devices import detect, target
from triton_metal.errors import DeviceError

from mac_support import found_on_mac, mac


@pytest.mark.parametrize(
    ("chip", "generation", "variant", "family"),
    [
        ("Apple M1", 1, "", 7),
        ("Apple M1 Ultra", 1, "Ultra", 7),
        ("Apple M2 Pro", 2, "Pro", 8),
        ("Apple M3 Max", 3, "Max", 9),
        ("Apple M4", 4, "", 9),
        ("Apple M5 Pro", 5, "Pro", 10),
        ("Apple M9", 9, "", None),
        ("Apple A17 Pro", None, None, None),
        ("Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz", None, None, None),
        ("Apple processor", None, None, None),
        (None, None, None, None),
    ],
)
def test_chips(chip, generation, variant, family):
    parsed = detect.parse_chip(chip)
    assert (parsed.generation, parsed.variant, parsed.family) == (generation, variant, family)
    assert parsed.is_apple_gpu == (generation is not None)


@pytest.mark.parametrize(
    ("chip", "macos", "msl", "there", "absent"),
    [
        ("Apple M1", "13.6.1", "3.0", "float_atomics simdgroup_matrix", "bfloat fp_pragmas"),
        ("Apple M1", "14.4", "3.1", "bfloat simdgroup_matrix", "memory_orders atomic64_min_max"),
        ("Apple M2 Max", "15.2", "3.2", "atomic64_min_max memory_orders", "tensor_ops"),
        ("Apple M4 Pro", "26.0", "4.0", "atomic64_min_max fp_pragmas", "tensor_ops"),
        ("Apple M5", "26.2", "4.0", "tensor_ops bfloat", ""),
        ("Apple M5", "26.1", "4.0", "bfloat", "tensor_ops"),
        ("Apple M5", "15.6", "3.2", "bfloat", "tensor_ops"),
        ("Apple M1 (Virtual)", "15.0", "3.2", "bfloat", "simdgroup_matrix tensor_ops"),
    ],
)
def test_targets_of_macs(chip, macos, msl, there, absent):
    result = found_on_mac(chip, macos).target("mlx")
    assert result.msl_version == msl
    assert {name for name in there.split() if result.features[name] is not True} == set()
    assert {name for name in absent.split() if result.features[name] is not False} == set()


def test_everything_that_a_mac_says():
    result = found_on_mac(
        "Apple M3 Max",
        "15.1",
        cores=40,
        memory=64 << 30,
        mlx={
            "version": "0.32.0",
            "device_name": "Apple M3 Max",
            "architecture": "applegpu_g15s",
            "max_recommended_working_set_size": 51539607552,
            "max_buffer_length": 38654705664,
            "memory_size": 64 << 30,
        },
        torch={"version": "2.13.0", "gpu_cores": 40, "working_set_bytes": 51539607552},
    )
    properties = result.properties("mlx", "MLX 0.32.0")
    assert properties.chip == "Apple M3 Max"
    assert properties.gpu_cores == 40
    assert properties.gpu_family == "apple9"
    assert properties.os == "macOS 15.1"
    assert properties.msl_version == "3.2"
    assert properties.working_set_bytes == 51539607552
    assert properties.max_buffer_bytes == 38654705664
    assert properties.memory_bytes == 64 << 30
    assert properties.features["atomic64_min_max"] is True
    assert result.sources["gpu_cores"] == "ioreg gpu-core-count"
    assert result.conflicts == ()
    assert result.problem() is None


def test_unknown_stays_unknown():
    result = found_on_mac(None, None)
    assert (result.chip.name, result.macos, result.gpu_cores) == (None, None, None)
    assert (result.working_set_bytes, result.memory_bytes, result.msl_version) == (None, None, None)
    properties = result.properties("mps", "torch")
    assert properties.gpu_family is None
    assert properties.features == {}
    assert result.problem().startswith("macOS (unknown version) is not supported")


def test_a_later_chip_has_what_every_m_chip_has():
    result = found_on_mac("Apple M7 Max", "27.1")
    assert result.gpu_family is None
    features = result.target("mlx").features
    assert features["simdgroup_matrix"] is True
    # Families are not known to go on: what came after the first is unknown, and the compiler leaves it out.
    assert features["atomic64_min_max"] is None
    assert features["tensor_ops"] is None
    assert "atomic64_min_max" not in result.target("mlx").spec()


def test_frameworks_fill_what_the_system_does_not_say():
    result = found_on_mac(
        "Apple M2",
        "14.0",
        torch={"version": "2.13.0", "gpu_cores": 10, "working_set_bytes": 11453251584},
    )
    assert result.gpu_cores == 10
    assert result.sources["gpu_cores"] == "torch.backends.mps.get_core_count()"
    assert result.working_set_bytes == 11453251584


def test_guests_have_a_virtual_gpu():
    chip = "Apple M2 Pro"
    by_name = found_on_mac(chip, "15.0", mlx={"device_name": "Apple Paravirtual device"})
    by_system = detect.gather(
        lambda command: (
            "1\n" if command[-1] == "kern.hv_vmm_present" else mac(chip, "15.0")(command)
        ),
        dict,
        dict,
        system="Darwin",
        machine="arm64",
    )
    for result in (by_name, by_system):
        assert result.chip.virtual
        assert result.conflicts == ()
        assert result.target("mlx").features["simdgroup_matrix"] is False
        assert result.target("mlx").features["float_atomics"] is True
    assert not found_on_mac(chip, "15.0").chip.virtual


def test_what_torch_says_is_asked_by_its_own_names(monkeypatch):
    torch = pytest.importorskip("torch")
    assert detect.torch_facts() == {"version": str(torch.__version__)} or sys.platform == "darwin"
    mps = torch.backends.mps
    # The functions are torch's, whatever the platform; only their answers stand in.
    assert callable(mps.get_core_count)
    assert callable(mps.get_name)
    assert callable(torch.mps.recommended_max_memory)
    monkeypatch.setattr(mps, "is_available", lambda: True)
    monkeypatch.setattr(mps, "get_core_count", lambda: 0)
    monkeypatch.setattr(mps, "get_name", lambda: "Apple M4")
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 12 << 30)
    assert detect.torch_facts() == {
        "version": str(torch.__version__),
        "gpu_cores": None,
        "device_name": "Apple M4",
        "working_set_bytes": 12 << 30,
    }


def test_what_mlx_says_is_asked_by_its_own_names(monkeypatch):
    mx = pytest.importorskip("mlx.core")
    assert callable(mx.device_info)
    if sys.platform != "darwin":
        assert detect.mlx_facts() == {"version": mx.__version__}
    monkeypatch.setattr(mx.metal, "is_available", lambda: True)
    monkeypatch.setattr(
        mx,
        "device_info",
        lambda device: {mx.gpu: {"memory_size": 5, "device_name": "Apple M1"}}[device],
    )
    assert detect.mlx_facts() == {
        "version": mx.__version__,
        "memory_size": 5,
        "device_name": "Apple M1",
    }


def test_sources_that_disagree_are_named():
    result = found_on_mac("Apple M2", "14.0", cores=8, torch={"gpu_cores": 10})
    assert result.gpu_cores == 8
    assert result.conflicts == (
        "gpu_cores: ioreg gpu-core-count says 8, torch.backends.mps.get_core_count() says 10",
    )


@pytest.mark.parametrize(
    ("chip", "macos", "words"),
    [
        (
            "Apple M1",
            "12.7.6",
            "macOS 12.7.6 is not supported: kernels need Metal 3, which requires macOS 13",
        ),
        (
            "Intel(R) Core(TM) i7",
            "14.0",
            "the chip Intel(R) Core(TM) i7 is not supported: kernels need a Mac with Apple silicon",
        ),
        (None, "14.0", "the chip (unknown) is not supported"),
        ("Apple M1", "", "macOS (unknown version) is not supported"),
    ],
)
def test_unsupported_macs(chip, macos, words):
    with pytest.raises(DeviceError) as caught:
        found_on_mac(chip, macos).target()
    assert words in str(caught.value)


def test_other_systems_have_no_apple_gpu():
    result = detect.gather(lambda command: "1\n", dict, dict, system="Linux", machine="x86_64")
    assert result.problem() == "Linux x86_64 has no Apple GPU"
    assert result.chip.name is None


@pytest.mark.parametrize(
    ("framework", "macos", "msl"),
    [
        ("mlx", "13.5", "3.1"),
        ("mps", "14.0", "3.1"),
        ("mlx", "15.0", "3.2"),
        ("mps", "15.0", "3.2"),
        ("mps", "26.1", "4.0"),
        ("mps", "27.0", "4.0"),
        ("mlx", "27.0", None),
        (None, "15.0", None),
    ],
)
def test_language_version_of_frameworks(framework, macos, msl):
    assert detect.framework_msl(framework, macos) == msl


def test_versions_of_the_language():
    assert target.parse_msl("4.1") == (4, 1)
    for bad in ("3", "three.one", "3.", ""):
        with pytest.raises(DeviceError, match="is not a version of the Metal language"):
            target.parse_msl(bad)


def test_commands_that_fail_are_no_answer():
    assert detect.run_command(["triton-metal-no-such-command"]) is None
    assert detect.run_command(["false"]) is None
    assert detect.run_command(["echo", "15.0"]) == "15.0\n"
