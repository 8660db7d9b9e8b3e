# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""VERL_HW_STRICT=1 makes every warning of ours an error."""

import logging

import pytest

from verl_hw_core import load_report
from verl_hw_core.errors import StrictModeError

logger = logging.getLogger("verl_hw_core")


@pytest.fixture(autouse=True)
def no_problems_yet(monkeypatch):
    monkeypatch.setattr(load_report, "_problems", [])
    yield
    logger.removeFilter(load_report._raise)


def test_a_warning_raises_and_information_does_not(monkeypatch):
    monkeypatch.setenv("VERL_HW_STRICT", "1")
    load_report.warnings_are_errors()
    logger.info("fine")
    with pytest.raises(StrictModeError, match="averages over 2 ranks"):
        logger.warning("averages over %d ranks", 2)


@pytest.mark.parametrize("value", [None, "", "0"])
def test_otherwise_a_warning_is_a_warning(monkeypatch, value):
    monkeypatch.delenv("VERL_HW_STRICT", raising=False) if value is None else monkeypatch.setenv(
        "VERL_HW_STRICT", value
    )
    load_report.warnings_are_errors()
    load_report.report("verl-hw-acme", "importing its engines", "no", "Reinstall it")
    load_report.require_none_if_strict()


def test_what_an_importer_swallowed_stops_the_engine(monkeypatch):
    monkeypatch.setenv("VERL_HW_STRICT", "1")
    load_report.warnings_are_errors()
    with pytest.raises(StrictModeError):
        load_report.report("verl-hw-acme", "importing its engines", "no", "Reinstall it")
    with pytest.raises(StrictModeError, match=r"verl-hw-acme: importing its engines: no\. Reinstall it"):
        load_report.require_none_if_strict()


def test_another_value_is_refused(monkeypatch):
    monkeypatch.setenv("VERL_HW_STRICT", "yes")
    with pytest.raises(StrictModeError, match="'yes'"):
        load_report.warnings_are_errors()


def test_every_logger_of_the_core_is_the_one_that_is_watched():
    import verl_hw_core.detection.node_survey
    import verl_hw_core.detection.result_cache

    for module in (verl_hw_core.detection.node_survey, verl_hw_core.detection.result_cache, load_report):
        assert module.logger is logger
