# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Weight sync: where bytes lie in a bucket, and what is refused of what a peer says."""

import json

import pytest
import torch

from verl_hw_core.weight_sync.layout import (
    Bucket,
    MalformedBucketError,
    Planner,
    UnsendableTensorError,
    check,
    fill,
    flat_range,
)
from verl_hw_core.weight_sync.receiving import Rebuilder
from verl_hw_core.weight_sync.topology import ALIGNMENT, Settings

SIZE = 4096
CPU = torch.device("cpu")


def pack(tensors: dict[str, torch.Tensor]) -> list[tuple[Bucket, torch.Tensor]]:
    """All buckets with their bytes."""
    planner, done = Planner(SIZE), []
    content = torch.zeros(SIZE, dtype=torch.uint8)
    for name, tensor in tensors.items():
        for piece in planner.place(name, tensor):
            if piece is None:
                done.append((planner.current, content))
                content = torch.zeros(SIZE, dtype=torch.uint8)
                planner.begin_next()
            else:
                fill(content, piece, tensor)
    planner.current.last = True
    return [*done, (planner.current, content)]


def memory(nbytes: int) -> torch.Tensor:
    return torch.empty(nbytes, dtype=torch.uint8)


class Kept:
    """Memory for split tensors that is the same each time, as a session keeps it on the host."""

    def __init__(self) -> None:
        self.memory = torch.zeros(8 * SIZE, dtype=torch.uint8)
        self.given = 0

    def __call__(self, nbytes: int) -> torch.Tensor:
        self.given += 1
        return self.memory[:nbytes]


def receive(buckets: list[tuple[Bucket, torch.Tensor]], kept: Kept) -> tuple[dict[str, torch.Tensor], list[bool]]:
    """Take buckets in as a receiver does: each lands while the consumer still has the one before.

    Returns:
        Copies of the tensors, and whether each bucket landed in the kept memory.
    """
    rebuilder, found, landed = Rebuilder(kept, {}), {}, []
    free = [torch.zeros(SIZE, dtype=torch.uint8) for _ in range(2)]

    def land(number: int) -> torch.Tensor:
        bucket, bytes_sent = buckets[number]
        content = rebuilder.landing(bucket, free[number % 2])
        content.copy_(bytes_sent[: bucket.used])
        landed.append(content.untyped_storage().data_ptr() == kept.memory.data_ptr())
        return content

    contents = {number: land(number) for number in range(min(2, len(buckets)))}
    for number, (bucket, _) in enumerate(buckets):
        content, views = contents.pop(number), []
        for piece in bucket.pieces:
            if (tensor := rebuilder.add(piece, content[piece.offset : piece.offset + piece.size])) is not None:
                views.append((piece.name, tensor))
        found |= {name: view.clone() for name, view in views}  # only now: the next bucket has landed already
        if number + 2 < len(buckets):
            contents[number + 2] = land(number + 2)
    rebuilder.finish()
    return found, landed


def unpack(buckets: list[tuple[Bucket, torch.Tensor]]) -> dict[str, torch.Tensor]:
    rebuilder, found = Rebuilder(memory, {}), {}
    for number, (bucket, content) in enumerate(buckets):
        said = json.loads(json.dumps(bucket.as_message()))
        heard = Bucket.from_message(said, number, SIZE)
        assert heard == bucket
        for piece in heard.pieces:
            tensor = rebuilder.add(piece, content[piece.offset : piece.offset + piece.size])
            if tensor is not None:
                found[piece.name] = tensor
    rebuilder.finish()
    return found


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(5000, dtype=torch.int16),
        torch.arange(6000).reshape(20, 30, 10).permute(2, 0, 1),
        torch.arange(7000).reshape(70, 100).t(),
        torch.arange(9000)[::3],
        torch.arange(1200.0)[None, :, None].expand(3, 1200, 2),
        torch.tensor(4, dtype=torch.int8),
        torch.ones(1, 37)[:, 0],
        torch.empty(3, 0),
        torch.ones(SIZE, dtype=torch.uint8),
        torch.ones(SIZE + 1, dtype=torch.bool),
        torch.arange(3000.0).reshape(30, 100).to(torch.float8_e4m3fn).t(),
        torch.complex(torch.arange(700.0), torch.ones(700)).to(torch.complex128),
    ],
    ids=lambda tensor: f"{tensor.dtype}-{list(tensor.shape)}",
)
def test_a_tensor_comes_back_bit_by_bit(tensor):
    before, after = torch.arange(3.0), torch.arange(5, dtype=torch.uint8)
    found = unpack(pack({"before": before, "it": tensor, "after": after}))
    assert found["it"].dtype == tensor.dtype
    assert found["it"].shape == tensor.shape
    wanted = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor).reshape(-1).view(torch.uint8)
    assert torch.equal(found["it"].contiguous().reshape(-1).view(torch.uint8), wanted)
    assert torch.equal(found["before"], before)
    assert torch.equal(found["after"], after)


def test_a_split_tensor_lands_where_it_is_put_together():
    tensors = {"small": torch.ones(5), "large": torch.arange(2500.0), "after": torch.ones(7)}
    kept = Kept()
    buckets = pack(tensors)
    found, landed = receive(buckets, kept)
    assert [len(bucket.pieces) for bucket, _ in buckets] == [1, 1, 1, 2]
    assert landed == [False, True, True, False]  # its rest shares a bucket, from which it is copied
    assert kept.given == 1
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize(
    ("between", "wanted"),
    [
        (0, [True, True, False, False, False, False]),
        (1, [True, True, False, True, True, False, True, True]),
    ],
)
def test_memory_is_not_written_while_the_consumer_may_read_the_last_split_tensor(between, wanted):
    """Tensors of two buckets each, with some of one bucket between them."""
    bucket = SIZE // 4
    sizes = [2 * bucket, *[bucket] * between, 2 * bucket, *[bucket] * between, 2 * bucket]
    tensors = {str(index): torch.full((size,), float(index + 1)) for index, size in enumerate(sizes)}
    found, landed = receive(pack(tensors), Kept())
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor), name
    assert landed == wanted


def test_ranges_of_a_strided_tensor_are_views_in_order():
    tensor = torch.arange(2 * 3 * 4 * 5).reshape(5, 4, 3, 2).permute(3, 1, 0, 2)
    flat = tensor.reshape(-1)
    for start in range(0, 120, 7):
        for stop in range(start, 121, 11):
            parts = list(flat_range(tensor, start, stop))
            assert torch.equal(torch.cat([part.reshape(-1) for part in parts] or [flat[:0]]), flat[start:stop])
            assert all(part.data_ptr() >= tensor.data_ptr() and part._base is not None for part in parts)


def test_pieces_are_aligned_and_a_tensor_that_fits_is_whole():
    tensors = {str(size): torch.zeros(size, dtype=torch.uint8) for size in (1, 4000, 300, 4096, 9000, 5)}
    for bucket, _ in pack(tensors):
        assert bucket.used <= SIZE
        for piece in bucket.pieces:
            assert piece.offset % ALIGNMENT == 0
            assert piece.is_whole or piece.nbytes > SIZE


GOOD = {"bucket": 0, "used": 8, "last": True, "pieces": [["w", "float32", [2], 0, 8, 0]]}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"bucket": 1}, "bucket 0 was due"),
        ({"bucket": "0"}, "bucket 0 was due"),
        ({"last": 1}, "bucket 0 was due"),
        ({"used": SIZE + 1}, "it uses 4097 bytes of 4096"),
        ({"used": -1}, "it uses -1 bytes"),
        ({"pieces": {}}, "it uses 8 bytes"),
        ({"pieces": [["w", "float32", [2], 0, 8]]}, "six fields"),
        ({"pieces": [[1, "float32", [2], 0, 8, 0]]}, "name is not a short string"),
        ({"pieces": [["w" * 5000, "float32", [2], 0, 8, 0]]}, "name is not a short string"),
        ({"pieces": [["w", "__import__", [2], 0, 8, 0]]}, "has no dtype '__import__'"),
        ({"pieces": [["w", "float32", [-2], 0, 8, 0]]}, "is no shape"),
        ({"pieces": [["w", "float32", [2.0], 0, 8, 0]]}, "is no shape"),
        ({"pieces": [["w", "float32", [2], 0, 12, 0]]}, "not in a tensor of 8"),
        ({"pieces": [["w", "float32", [2], 2, 6, 0]]}, "not in a tensor of 8"),
        ({"pieces": [["w", "float32", [2], 0, 8, 4]]}, "do not fit"),
        ({"pieces": [["w", "float32", [2], 0, 8, 256]]}, "do not fit"),
        ({"pieces": [["w", "float32", [2], 0, 8, 0], ["v", "float32", [2], 0, 8, 0]]}, "do not fit"),
        ({"pieces": [["w", "float32", [2], True, 8, 0]]}, "must be counts"),
    ],
)
def test_what_cannot_be_right_is_refused(change, text):
    Bucket.from_message(GOOD, 0, SIZE)
    with pytest.raises(MalformedBucketError, match=text):
        Bucket.from_message({**GOOD, **change}, 0, SIZE)


def test_a_torn_tensor_is_named():
    buckets = pack({"large": torch.arange(3000.0), "small": torch.zeros(2)})
    with pytest.raises(MalformedBucketError, match="large was cut off after 4096 of 12000 bytes"):
        unpack([buckets[0], (Bucket(1, buckets[-1][0].pieces[1:], buckets[-1][0].used, True), buckets[-1][1])])
    with pytest.raises(MalformedBucketError, match="ended after 4096 of its 12000 bytes") as caught:
        unpack(buckets[:1])
    assert caught.value.tensor == "large"


def test_a_shape_of_an_earlier_update_must_come_again():
    (bucket, _), *_ = pack({"w": torch.zeros(2, 3)})
    Rebuilder(memory, {"w": (2, 3), "v": (9,)}).check(bucket)
    with pytest.raises(MalformedBucketError, match=r"its shape is \[2, 3\], in the last update it was \[3, 2\]"):
        Rebuilder(memory, {"w": (3, 2)}).check(bucket)


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.zeros(2, 2).to_sparse(), "sparse_coo"),
        (torch.quantize_per_tensor(torch.zeros(2), 1.0, 0, torch.qint8), "quantized"),
        (torch.zeros(2, device="meta"), "without data"),
    ],
)
def test_tensors_without_plain_bytes_are_refused(tensor, text):
    with pytest.raises(UnsendableTensorError, match=text):
        check(tensor)


@pytest.mark.parametrize("wrong", [{"bucket_size": 10}, {"bucket_timeout": 0}, {"rendezvous_timeout": float("inf")}])
def test_settings_that_cannot_be_right(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**{"bucket_size": 1 << 20, **wrong})
