# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds which platform name in verl's registry, in every order of loading."""

import copy
import sys
import types

import cloudpickle
import pytest
from acme import spec

from verl_hw_core import load_report, registration
from verl_hw_core.errors import ContractMismatchError, UnknownPlatformError, VerlVersionError
from verl_hw_core.facts import vendors
from verl_hw_core.platform import table as platform_table
from verl_hw_core.upstream import patches


@pytest.fixture
def registry(monkeypatch, built_in_platforms):
    """verl's registry as it is when plugins load: built-in platforms only, nothing resolved, no engines imported."""
    from verl.plugin.platform import platform_manager
    from verl.plugin.platform.platform_manager import PlatformRegistry

    monkeypatch.setattr(platform_manager, "_current_platform", None)
    monkeypatch.delitem(sys.modules, "verl.workers.engine", raising=False)
    monkeypatch.setattr(patches, "_replaced", {})
    monkeypatch.setattr(PlatformRegistry, "_platforms", built_in_platforms)
    monkeypatch.setattr(vendors, "_vendors", {})
    monkeypatch.setattr(load_report, "_problems", [])
    monkeypatch.setenv("VERL_USE_EXTERNAL_PLUGINS", "none")
    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    return PlatformRegistry


@pytest.fixture
def wheel(monkeypatch, verl_without_plugins):
    """Make an importable vendor wheel and return the keyword arguments of its register() call."""
    from verl_hw_core.platform import AcceleratorPlatform

    def make(key="acme", **changes):
        facts = spec(key=key, distribution=f"verl-hw-{key}", **changes)
        module = types.ModuleType(f"verl_hw_{key}_platform")
        module.Platform = type(
            "Platform",
            (AcceleratorPlatform,),
            {"spec": facts, "__module__": module.__name__, "__qualname__": "Platform"},
        )
        monkeypatch.setitem(sys.modules, module.__name__, module)
        references = {"platform": f"{module.__name__}:Platform", "engines": f"verl_hw_{key}_engines", "contract": 1}
        return facts, references

    return make


def foreign_class():
    from verl.plugin.platform.platform_cuda import PlatformCUDA

    return type("PlatformOther", (PlatformCUDA,), {"__module__": "verl_hardware_plugin.platforms"})


def register(wheel):
    facts, references = wheel
    registration.register(facts, **references)
    return sys.modules[references["platform"].split(":")[0]].Platform


def test_key_and_aliases_lead_to_our_class(registry, wheel):
    ours = register(wheel(aliases=("apu",)))
    assert registry.get("acme") is registry.get(" APU ") is ours


def test_vendors_are_asked_before_the_built_in_platforms(registry, wheel):
    built_in = registry.registered_names()
    register(wheel("acme", aliases=("apu",)))
    register(wheel("bolt"))
    assert registry.registered_names() == ("acme", "apu", "bolt", *built_in)


def test_registering_twice_changes_nothing(registry, wheel):
    made = wheel()
    register(made)
    before = dict(registry._platforms)
    register(made)
    assert dict(registry._platforms) == before
    assert load_report.problems() == ()


def test_a_reloaded_class_takes_its_own_place(registry, wheel):
    register(wheel())
    reloaded = register(wheel())
    assert registry.get("acme") is reloaded
    assert load_report.problems() == ()


def test_foreign_class_before_us_is_replaced_and_named(registry, wheel, caplog):
    registry.register(platform="acme")(foreign_class())
    ours = register(wheel())
    assert registry.get("acme") is ours
    assert "verl_hardware_plugin.platforms.PlatformOther" in caplog.text
    assert "Uninstall" in load_report.problems()[0].message


def test_a_class_of_verls_own_under_our_name_is_no_reason_to_uninstall_verl(registry, wheel):
    own = type("PlatformAcme", (foreign_class(),), {"__module__": "verl.plugin.platform.platform_acme"})
    registry.register(platform="acme")(own)
    register(wheel())
    registry.register(platform="acme")(own)
    for problem in load_report.problems():
        assert "to use verl's own, uninstall verl-hw-acme" in problem.message
        assert "'verl'" not in problem.message
    assert len(load_report.problems()) == 2


def test_the_table_is_copied_and_pickled_with_its_owners(registry, wheel):
    ours = register(wheel())
    for table in (copy.deepcopy(registry._platforms), cloudpickle.loads(cloudpickle.dumps(registry._platforms))):
        assert type(table) is platform_table.PlatformTable
        assert list(table) == list(registry._platforms)
        assert table.get("acme").__qualname__ == ours.__qualname__
        table["acme"] = foreign_class()
        assert table.get("acme").__qualname__ == ours.__qualname__, "the copy no longer protects the name"
    assert copy.copy(registry._platforms) == registry._platforms


def test_foreign_class_after_us_is_refused_and_named(registry, wheel, caplog):
    ours = register(wheel(aliases=("apu",)))
    registry.register(platform="acme")(foreign_class())
    registry.register(platform="apu")(foreign_class())
    assert registry.get("acme") is registry.get("apu") is ours
    assert "was refused" in caplog.text
    assert len(load_report.problems()) == 2


def test_other_names_stay_free_for_others(registry, wheel):
    register(wheel())
    other = foreign_class()
    registry.register(platform="other")(other)
    assert registry.get("other") is other


@pytest.mark.parametrize("wanted", ["acme", "ACME", " acme ", "apu", "APU", ""])
def test_names_that_users_type_work(registry, wheel, monkeypatch, wanted):
    monkeypatch.setenv("VERL_PLATFORM", wanted)
    ours = register(wheel(aliases=("apu",)))
    assert registry.get(wanted or "acme") is ours


def test_a_typo_ends_the_process_at_once_with_the_nearest_name(registry, wheel, monkeypatch):
    monkeypatch.setenv("VERL_PLATFORM", "acmee")
    with pytest.raises(SystemExit, match=r"VERL_PLATFORM='acmee'.*did you mean 'acme'"):
        register(wheel())


def test_the_name_of_a_vendor_whose_wheel_is_missing_names_the_wheel(registry, wheel, monkeypatch):
    monkeypatch.setenv("VERL_PLATFORM", "XPU")
    with pytest.raises(SystemExit, match="pip install verl-hw-intel"):
        register(wheel())
    monkeypatch.setenv("VERL_PLATFORM", "intell")
    with pytest.raises(SystemExit, match="did you mean 'intel'"):
        register(wheel())


def test_a_name_that_a_later_wheel_may_bring_is_decided_at_first_use(registry, wheel, monkeypatch):
    monkeypatch.setenv("VERL_PLATFORM", "bolt")
    monkeypatch.setattr(platform_table, "_plugins_still_to_load", lambda package: True)
    register(wheel("acme"))
    with pytest.raises(UnknownPlatformError, match="'bolt'"):
        registry.get("bolt")
    ours = register(wheel("bolt"))
    assert registry.get("bolt") is ours


def test_a_wheel_that_waits_for_verl_in_its_middle_is_still_to_come(registry, wheel, monkeypatch):
    """``import verl_hw_bolt`` imports verl, whose loop registers the other wheels before bolt goes on."""
    entry = types.SimpleNamespace(name="bolt", module="verl_hw_bolt")
    monkeypatch.setattr(platform_table.metadata, "entry_points", lambda group: [entry])
    monkeypatch.setenv("VERL_USE_EXTERNAL_PLUGINS", "auto")
    monkeypatch.setenv("VERL_PLATFORM", "bolt")
    half_imported = types.ModuleType("verl_hw_bolt")
    half_imported.__spec__ = types.SimpleNamespace(_initializing=True)
    monkeypatch.setitem(sys.modules, "verl_hw_bolt", half_imported)
    register(wheel("acme"))
    half_imported.__spec__._initializing = False
    with pytest.raises(SystemExit, match="'bolt'"):
        register(wheel("acme"))


def test_other_contract_is_refused_and_the_older_side_named(registry, wheel):
    facts, references = wheel()
    with pytest.raises(ContractMismatchError, match="pip install -U verl-hw-core"):
        registration.register(facts, **{**references, "contract": 2})
    with pytest.raises(ContractMismatchError, match="pip install -U verl-hw-acme"):
        registration.register(facts, **{**references, "contract": 0})
    assert "acme" not in registry.registered_names()
    assert len(load_report.problems()) == 2


def test_facts_that_do_not_load_are_reported_and_the_contract_speaks_first(registry, wheel, tmp_path, monkeypatch):
    (tmp_path / "verl_hw_odd_spec.py").write_text(
        "from verl_hw_core import HardwareSpec\nSPEC = HardwareSpec(colour=1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    _, references = wheel()
    with pytest.raises(TypeError, match="colour"):
        registration.register("verl_hw_odd_spec:SPEC", **references)
    assert "TypeError" in load_report.problems()[0].message
    with pytest.raises(ContractMismatchError):
        registration.register("verl_hw_odd_spec:SPEC", **{**references, "contract": 2})


def test_a_new_abstract_method_of_verl_is_named(registry, wheel):
    facts, references = wheel()
    sys.modules[references["platform"].split(":")[0]].Platform.__abstractmethods__ = frozenset({"new_duty"})
    with pytest.raises(VerlVersionError, match=r"new_duty.*pip install -U verl-hw-core"):
        registration.register(facts, **references)


def test_broken_platform_module_is_reported_with_traceback_and_raised(registry, wheel, tmp_path, monkeypatch, caplog):
    (tmp_path / "broken_wheel.py").write_text("import library_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    facts, references = wheel()
    with pytest.raises(ModuleNotFoundError):
        registration.register(facts, **{**references, "platform": "broken_wheel:Platform"})
    (problem,) = load_report.problems()
    assert "ModuleNotFoundError: No module named 'library_that_is_not_there'" in problem.message
    assert "broken_wheel.py" in problem.traceback
    assert [record.levelname for record in caplog.records if record.name == "verl_hw_core"] == ["WARNING"]


def test_platform_fixed_too_early_is_said_where_detection_decides(registry, wheel, monkeypatch):
    from verl.plugin.platform import platform_manager

    monkeypatch.setattr(platform_manager, "_current_platform", registry.get("nvidia")())
    monkeypatch.setenv("VERL_PLATFORM", "nvidia")
    register(wheel("bolt"))
    monkeypatch.delenv("VERL_PLATFORM")
    register(wheel("bolt"))
    assert load_report.problems() == ()
    register(wheel())
    assert "already fixed to 'nvidia'" in load_report.problems()[0].message


def test_engines_wait_for_verl_and_one_broken_vendor_is_alone(registry, wheel, tmp_path, monkeypatch):
    (tmp_path / "verl_hw_acme_engines.py").write_text("raise OSError('libacme.so')")
    (tmp_path / "verl_hw_bolt_engines.py").write_text("loaded = True")
    monkeypatch.syspath_prepend(tmp_path)
    for key in ("acme", "bolt"):
        register(wheel(key))
    assert "verl_hw_bolt_engines" not in sys.modules
    for key in ("acme", "bolt"):  # what the post-import hook of verl.workers.engine does
        registration._import_engines(key, sys)
    assert sys.modules.pop("verl_hw_bolt_engines").loaded
    (problem,) = load_report.problems()
    assert problem.wheel == "verl-hw-acme"
    assert "OSError: libacme.so" in problem.message
