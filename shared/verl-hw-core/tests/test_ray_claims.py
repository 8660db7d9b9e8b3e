# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The node's file of cards in use: one bundle a card, the same card after a restart, the cards of the dead set free."""

import multiprocessing
from pathlib import Path

import pytest
from filelock import FileLock
from machine_speed import scaled

from verl_hw_core.errors import DeviceAssignmentError
from verl_hw_core.ray_support import claims
from verl_hw_core.ray_support.claims import Claims

CARDS = ("3", "1", "2")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "verl_hw" / "devices.json"


def node(file: Path, *dead: str) -> Claims:
    return Claims(file, lambda holder: holder not in dead)


def test_each_bundle_gets_the_next_card_and_keeps_it(file):
    asked = ("a/0", "a/1", "a/0", "b/0", "a/1")
    assert [node(file).take(bundle, CARDS) for bundle in asked] == ["3", "1", "3", "2", "1"]


def test_a_full_node_is_an_error_that_names_the_holders(file):
    for bundle in ("a/0", "a/1", "b/0"):
        node(file).take(bundle, CARDS)
    with pytest.raises(DeviceAssignmentError, match=r"for bundle c/0 .*3 by a/0, 1 by a/1, 2 by b/0"):
        node(file).take("c/0", CARDS)
    with pytest.raises(DeviceAssignmentError, match="the process sees none"):
        node(file).take("c/0", ())


def test_cards_of_removed_groups_are_free_again(file):
    for bundle in ("a/0", "a/1", "b/0"):
        node(file).take(bundle, CARDS)
    assert node(file, "a/1").take("c/0", CARDS) == "1"
    with pytest.raises(DeviceAssignmentError):
        node(file).take("d/0", CARDS)


def test_one_certain_card_is_refused_while_its_bundle_lives(file):
    assert node(file).take("a/0", ("1",)) == "1"
    with pytest.raises(DeviceAssignmentError, match=r"1 by a/0.*would share a card"):
        node(file).take("a/1", ("1",))
    assert node(file, "a/0").take("a/1", ("1",)) == "1"


def test_a_bundle_that_moves_gives_its_card_back(file):
    node(file).take("a/0", ("1",))
    node(file).take("a/0", ("2",))
    assert node(file).take("a/1", ("1",)) == "1"


def _take(file, bundle, found):
    found.put(node(file).take(bundle, [str(card) for card in range(8)]))


def test_processes_at_once(file):
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    takers = [context.Process(target=_take, args=(file, f"a/{index}", found)) for index in range(8)]
    for taker in takers:
        taker.start()
    cards = {found.get(timeout=scaled(60)) for _ in takers}
    for taker in takers:
        taker.join(scaled(60))
    assert cards == {str(card) for card in range(8)}


def test_a_damaged_file_and_a_stuck_lock_are_errors(file, monkeypatch):
    file.parent.mkdir()
    file.write_text("[1]", encoding="utf-8")
    with pytest.raises(DeviceAssignmentError, match="delete the file"):
        node(file).take("a/0", CARDS)
    monkeypatch.setattr(claims, "LOCK_SECONDS", 0.1)
    with FileLock(file.with_suffix(".lock")), pytest.raises(DeviceAssignmentError, match="was locked"):
        Claims(file, bool).take("a/0", CARDS)
