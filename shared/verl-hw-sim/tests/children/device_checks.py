# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""What a simulated device must do, whatever the vendor."""

import contextlib
import copy
import io
import itertools

import torch
import torch.nn.functional as F
from checks import raises

from verl_hw_sim.simulation import active_simulation

SIMULATION = active_simulation()
D = SIMULATION.profile.device_name
MODULE = getattr(torch, D)
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])


def check_import_does_not_start_the_runtime():
    assert not SIMULATION.native.started()
    assert not MODULE.is_initialized()
    torch.manual_seed(3)  # seeding waits for the runtime
    assert not SIMULATION.native.started()
    first = torch.rand(3, device=D)
    assert MODULE.is_initialized()
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(3, device=D))


def check_devices():
    assert MODULE.is_available()
    assert MODULE.device_count() == 2
    assert torch.accelerator.current_accelerator() == torch.device(D)
    assert torch.accelerator.device_count() == 2
    assert MODULE.current_device() == 0
    MODULE.set_device(1)
    assert torch.empty(1, device=D).device == torch.device(D, 1)
    with MODULE.device(0):
        assert torch.empty(1, device=D).device.index == 0
    assert MODULE.current_device() == 1
    with MODULE.device_of(torch.empty(1, device=f"{D}:0")):
        assert MODULE.current_device() == 0
    MODULE.set_device(torch.device(D, 0))
    assert MODULE.current_device() == 0
    MODULE.synchronize()
    MODULE.synchronize(1)


def check_moving():
    tensor = torch.arange(6.0).reshape(2, 3)
    for there in (tensor.to(D), getattr(tensor, D)(), tensor.to(f"{D}:1"), tensor.to(0), tensor.to(D, torch.bfloat16)):
        assert there.device.type == D
        assert torch.equal(there.float().cpu(), tensor)
    assert tensor.to(f"{D}:1").to(f"{D}:0").device.index == 0
    strided = tensor.t().to(D)
    assert strided.stride() == tensor.t().stride()
    assert torch.equal(strided.cpu(), tensor.t())
    assert getattr(tensor.to(D), f"is_{D}")
    assert repr(tensor.to(D)).endswith(f"device='{D}:0')")


def check_factories():
    made = [
        torch.arange(3, device=D),
        torch.tensor([1.0], device=D),
        torch.randperm(3, device=D),
        torch.full((2,), 3, device=D),
        torch.eye(2, device=D),
        torch.linspace(0, 1, 5, device=D),
        torch.zeros(2, device=D).new_ones(2),
        torch.ones_like(torch.zeros(2, device=D)),
        torch.empty_strided((2, 2), (1, 2), device=D),
    ]
    assert all(tensor.device == torch.device(D, 0) for tensor in made)
    with torch.device(D):
        assert torch.nn.Linear(2, 2).weight.device.type == D


def check_mixed_devices_raise():
    here, there = torch.ones(2), torch.ones(2, device=D)
    words = ("Expected all tensors to be on the same device",)
    raises(RuntimeError, lambda: here + there, *words)
    raises(RuntimeError, lambda: there + here, *words)
    raises(RuntimeError, lambda: torch.ones(2, 2, device=D) @ torch.ones(2, 2), *words)
    raises(RuntimeError, lambda: torch.cat([here, there]), *words)
    raises(RuntimeError, lambda: there + torch.ones(2, device=f"{D}:1"), *words)
    raises(RuntimeError, lambda: there + torch.tensor(1.0, device=f"{D}:1"), *words)
    raises(RuntimeError, lambda: F.linear(torch.ones(1, 2, device=D), torch.ones(2, 2)), *words)
    assert (there + torch.tensor(1.0)).device.type == D  # a CPU scalar is welcome, as on real devices
    assert torch.equal(there[torch.tensor([0])].cpu(), torch.ones(1))  # so are CPU indices


def check_numpy_raises():
    raises(TypeError, lambda: torch.ones(2, device=D).numpy())
    assert torch.ones(2, device=D).cpu().numpy().tolist() == [1, 1]


def check_ordinals_out_of_range_raise():
    for ordinal in (2, 7):
        device = f"{D}:{ordinal}"
        raises(RuntimeError, lambda device=device: torch.empty(1, device=device), "invalid device ordinal")
        raises(RuntimeError, lambda device=device: torch.ones(1).to(device), "invalid device ordinal")
        raises(RuntimeError, lambda ordinal=ordinal: MODULE.set_device(ordinal), "invalid device ordinal")
        raises(RuntimeError, lambda ordinal=ordinal: MODULE.synchronize(ordinal), "invalid device ordinal")
        for name in (
            "current_stream",
            "default_stream",
            "get_device_capability",
            "get_device_name",
            "get_device_properties",
            "get_rng_state",
            "max_memory_allocated",
            "mem_get_info",
            "memory_allocated",
            "memory_stats",
            "reset_peak_memory_stats",
            "set_device",
        ):
            if hasattr(MODULE, name):
                function = getattr(MODULE, name)
                raises(RuntimeError, lambda ordinal=ordinal, call=function: call(ordinal), "invalid device ordinal")
        if D != "xpu" or TORCH >= (2, 10):  # torch.xpu has it since then
            raises(
                RuntimeError,
                lambda ordinal=ordinal: MODULE.can_device_access_peer(0, ordinal),
                "invalid device ordinal",
            )
    assert MODULE.current_device() == 0


def check_views_share_memory():
    tensor = torch.zeros(2, 8, device=D)
    view = tensor.view(4, 4)[:, 1:3]
    view.add_(1)
    assert tensor.sum().item() == 8
    tensor.view(torch.uint8).zero_()  # weight transfer looks at buffers as bytes
    assert tensor.sum().item() == 0
    halves = torch.arange(4.0, device=D).chunk(2)
    halves[0].fill_(9)
    assert halves[0]._base.tolist() == [9, 9, 2, 3]
    assert torch.view_as_real(torch.ones(2, dtype=torch.complex64, device=D)).shape == (2, 2)
    assert tensor.unfold(1, 2, 2).shape == (2, 4, 2)
    assert tensor.detach().data_ptr() == tensor.data_ptr()


def check_results_equal_the_cpu():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 16, generator=generator)
    w = torch.randn(16, 16, generator=generator)
    ids = torch.randint(0, 8, (5,), generator=generator)
    operations = {
        "matmul": lambda a, b, i: a @ b,
        "linear": lambda a, b, i: F.linear(a, b),
        "layer_norm": lambda a, b, i: F.layer_norm(a, [16]),
        "softmax": lambda a, b, i: a.softmax(-1),
        "log_softmax_bf16": lambda a, b, i: a.bfloat16().log_softmax(-1),
        "gelu": lambda a, b, i: F.gelu(a),
        "silu": lambda a, b, i: F.silu(a),
        "embedding": lambda a, b, i: F.embedding(i, a),
        "index_select": lambda a, b, i: a.index_select(0, i),
        "gather": lambda a, b, i: a.gather(0, i.unsqueeze(1)),
        "scatter_add": lambda a, b, i: a.scatter_add(0, i.unsqueeze(1), torch.ones_like(a)[:5, :1]),
        "cumsum": lambda a, b, i: a.cumsum(0),
        "sort": lambda a, b, i: torch.stack(a.sort(dim=1)[:1]),
        "topk": lambda a, b, i: a.topk(3).values,
        "argmax": lambda a, b, i: a.argmax(-1),
        "logsumexp": lambda a, b, i: a.logsumexp(-1),
        "where": lambda a, b, i: torch.where(a > 0, a, b[:8]),
        "masked": lambda a, b, i: a[a > 0],
        "nonzero": lambda a, b, i: (a > 0).nonzero(),
        "unique": lambda a, b, i: torch.unique(i),
        "cross_entropy": lambda a, b, i: F.cross_entropy(a[:5], i),
        "norm": lambda a, b, i: torch.linalg.vector_norm(a),
        "foreach_norm": lambda a, b, i: torch.stack(torch._foreach_norm([a, b])),
        "conv1d": lambda a, b, i: F.conv1d(a.view(1, 8, 16), b.view(16, 8, 2), padding=1),
        "einsum": lambda a, b, i: torch.einsum("ij,jk->ik", a, b),
        "var": lambda a, b, i: a.var(dim=1),
        "repeat_interleave": lambda a, b, i: torch.repeat_interleave(a, i.new_full((8,), 2), dim=0),
        "pad": lambda a, b, i: F.pad(a, (1, 2)),
        "roll": lambda a, b, i: a.roll(1, 0),
        "multiply_scalar": lambda a, b, i: 2 * a - 1.5,
    }
    for name, operation in operations.items():
        here = operation(x, w, ids)
        there = operation(x.to(D), w.to(D), ids.to(D))
        assert there.device.type == D, name
        assert there.dtype == here.dtype, name
        assert torch.equal(there.cpu(), here), name


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(32, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.qkv = torch.nn.Linear(16, 48)
        self.conv = torch.nn.Conv1d(16, 16, 3, padding=1)
        self.head = torch.nn.Linear(16, 32)

    def forward(self, ids):
        hidden = self.embed(ids)
        q, k, v = self.qkv(self.norm(hidden)).view(*ids.shape, 3, 2, 8).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        hidden = hidden + attended.transpose(1, 2).reshape(hidden.shape)
        hidden = hidden + self.conv(hidden.transpose(1, 2)).transpose(1, 2)
        return self.head(F.gelu(hidden))


def _train(device, steps=3, **options):
    torch.manual_seed(1)
    net = Net().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, **options)
    norms = []
    for step in range(steps):
        ids = torch.randint(0, 32, (2, 7), generator=torch.Generator().manual_seed(step)).to(device)
        loss = F.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0).item())
        optimizer.step()
        optimizer.zero_grad()
    return norms, [parameter.detach().cpu() for parameter in net.parameters()]


def check_training_equals_the_cpu():
    norms, parameters = _train("cpu")
    for options in ({}, {"foreach": True}, {"fused": True}):
        cpu_norms, cpu_parameters = (norms, parameters) if not options else _train("cpu", **options)
        device_norms, device_parameters = _train(D, **options)
        assert device_norms == cpu_norms, options
        for ours, theirs in zip(device_parameters, cpu_parameters, strict=True):
            assert torch.equal(ours, theirs), options


def check_softmax_with_another_dtype():
    values = torch.linspace(-3, 3, 12).view(3, 4)
    for function in (F.softmax, F.log_softmax):
        for dtype, result in itertools.product((torch.half, torch.bfloat16, torch.float), (torch.float, None)):
            outcomes = []
            for device in ("cpu", D):
                x = values.to(device, dtype, copy=True).requires_grad_()
                y = function(x, dim=-1, dtype=result)
                (y.float() ** 2).sum().backward()
                outcomes.append((y.dtype, y.detach().cpu(), x.grad.dtype, x.grad.cpu()))
            (cpu_dtype, cpu, cpu_grad_dtype, cpu_grad), (found_dtype, found, grad_dtype, grad) = outcomes
            assert (found_dtype, grad_dtype) == (cpu_dtype, cpu_grad_dtype)
            assert torch.equal(found, cpu)
            assert torch.equal(grad, cpu_grad)


def check_autograd_equals_the_cpu():
    a = torch.randn(4, 4, requires_grad=True)
    b = a.detach().to(D).requires_grad_()
    for x in (a, b):
        F.layer_norm(x, [4]).softmax(-1).pow(2).cumsum(0).sum().backward()
    assert b.grad.device == torch.device(D, 0)
    assert torch.equal(a.grad, b.grad.cpu())
    checkpointed = torch.utils.checkpoint.checkpoint(lambda x: F.dropout(x, 0.5).exp(), b, use_reentrant=False)
    checkpointed.sum().backward()


def check_generators():
    torch.manual_seed(3)
    on_cpu = torch.rand(3)
    torch.manual_seed(3)
    on_device = torch.rand(3, device=D)
    assert torch.equal(on_cpu, on_device.cpu())  # the same engine
    assert torch.equal(on_cpu, torch.rand(3))  # but drawing on the device left the CPU's alone
    torch.manual_seed(3)
    torch.rand(3)
    assert torch.equal(on_device, torch.rand(3, device=D))  # and the other way round
    state = MODULE.get_rng_state()
    expected = torch.randn(5, device=D)
    MODULE.set_rng_state(state)
    assert torch.equal(expected, torch.randn(5, device=D))
    MODULE.manual_seed(5)
    other = torch.rand(2, device=f"{D}:1")
    MODULE.manual_seed_all(5)
    assert not torch.equal(other, torch.rand(2, device=f"{D}:1"))
    assert MODULE.initial_seed() == 5
    MODULE.manual_seed(-1)
    states = MODULE.get_rng_state_all()
    assert len(states) == len(MODULE.default_generators) == 2
    MODULE.set_rng_state_all(states)
    on_cpu = torch.Generator()
    raises(RuntimeError, lambda: torch.rand(2, device=D, generator=on_cpu), f"Expected a '{D}' device type")
    raises(RuntimeError, lambda: torch.rand(2, generator=torch.Generator(device=D)), "device")
    own = torch.Generator(device=D).manual_seed(1)
    draws = torch.rand(4, device=D, generator=own)
    assert torch.equal(draws, torch.rand(4, device=D, generator=torch.Generator(device=D).manual_seed(1)))
    saved = own.get_state()
    following = torch.rand(1, device=D, generator=own)
    own.set_state(saved)
    assert torch.equal(following, torch.rand(1, device=D, generator=own))
    assert torch.equal(own.clone_state().get_state(), own.get_state())
    with torch.random.fork_rng(devices=[0], device_type=D):
        torch.rand(2, device=D)


def check_random_operators_without_a_generator():
    for draw in (
        lambda device: F.dropout(torch.ones(64, device=device), 0.5),
        lambda device: torch.rand_like(torch.ones(8, device=device)),
        lambda device: torch.multinomial(torch.ones(8, device=device), 4),
        lambda device: torch.bernoulli(torch.full((8,), 0.5, device=device)),
        lambda device: torch.empty(8, device=device).normal_(),
        lambda device: torch.empty(8, device=device).exponential_(),
        lambda device: torch.randperm(8, device=device),
        lambda device: torch.randint(0, 9, (8,), device=device),
    ):
        torch.manual_seed(1)
        here = draw("cpu")
        before = torch.get_rng_state()
        torch.manual_seed(1)
        there = draw(D)
        assert torch.equal(here, there.cpu())
        torch.manual_seed(1)
        draw("cpu")
        assert torch.equal(before, torch.get_rng_state())


def check_storage_resize():
    tensor = torch.arange(6.0, device=D)
    storage = tensor.untyped_storage()
    size = storage.size()
    before = MODULE.memory_allocated()
    storage.resize_(0)  # FSDP1 frees a parameter so
    assert MODULE.memory_allocated() == before - size
    storage.resize_(size)
    tensor.fill_(2)
    assert tensor.sum().item() == 12
    assert storage.device == torch.device(D, 0)
    view = torch.arange(8.0, device=D).view(torch.uint8)[8:]
    view.untyped_storage().resize_(0)
    raises(RuntimeError, lambda: torch.empty(2, device=D).set_(torch.empty(2, device=f"{D}:1")), "cannot back")
    grown = torch.empty(0, device=D).set_(torch.ones(2, device=D).untyped_storage(), 0, (64, 64))
    grown.fill_(1)  # a storage that is too small grows, as on the CPU
    assert grown.untyped_storage().size() == 64 * 64 * 4


def check_out_arguments_are_resized():
    out = torch.empty(0, device=D)
    torch.add(torch.ones(5, device=D), 1, out=out)
    assert out.shape == (5,)
    assert out.tolist() == [2] * 5
    assert out.device == torch.device(D, 0)
    small = torch.empty(0, device=D).resize_(2, 3)
    assert small.shape == (2, 3)


def check_set_data_across_devices():
    parameter = torch.nn.Parameter(torch.ones(2))
    for device in (f"{D}:1", "cpu", D):
        parameter.data = parameter.data.to(device)
        parameter.grad = None
        (parameter * 2).sum().backward()
        assert parameter.device.type == torch.device(device).type
        assert parameter.grad.device == parameter.device
    assert torch.nn.Linear(2, 2).to(D).cpu().weight.device.type == "cpu"


def check_pinned_memory():
    pinned = torch.ones(3).pin_memory()
    assert pinned.is_pinned()
    assert not torch.ones(3).is_pinned()
    assert torch.empty(2, pin_memory=True).is_pinned()
    assert pinned[1:].is_pinned()
    assert pinned.to(D, non_blocking=True).tolist() == [1, 1, 1]


def check_autocast():
    a = torch.randn(4, 4, device=D, requires_grad=True)
    with torch.autocast(D, dtype=torch.bfloat16):
        product = a @ a
        assert product.dtype == torch.bfloat16
        assert F.softmax(product, -1).dtype == torch.float32
        assert F.linear(a, a).dtype == torch.bfloat16
        assert F.layer_norm(product, [4]).dtype == torch.float32
        assert (a + 1).dtype == torch.float32
    assert (a @ a).dtype == torch.float32
    product.float().sum().backward()
    assert a.grad.dtype == torch.float32
    scaler = torch.amp.GradScaler(D, init_scale=4.0)
    optimizer = torch.optim.SGD([a], lr=0.1)
    scaler.scale((a * 2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 4.0


def check_save_and_load():
    tensor = torch.arange(4.0, device=f"{D}:1")
    buffer = io.BytesIO()
    torch.save({"tensor": tensor, "view": tensor[1:3]}, buffer)
    for options, device in (({}, f"{D}:1"), ({"map_location": "cpu"}, "cpu"), ({"map_location": f"{D}:0"}, f"{D}:0")):
        buffer.seek(0)
        loaded = torch.load(buffer, weights_only=True, **options)
        assert loaded["tensor"].device == torch.device(device)
        assert torch.equal(loaded["tensor"].cpu(), tensor.cpu())
        assert loaded["view"].untyped_storage().data_ptr() == loaded["tensor"].untyped_storage().data_ptr()
    copied = copy.deepcopy(tensor)
    assert copied.device == tensor.device
    assert copied.data_ptr() != tensor.data_ptr()


def check_nested_jagged():
    values, offsets = torch.randn(5, 4, device=D), torch.tensor([0, 2, 5], device=D)
    nested = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert nested.device.type == D
    assert (nested * 2).values().sum().item() == (values * 2).sum().item()
    here = torch.nested.nested_tensor_from_jagged(values.cpu(), offsets.cpu())
    assert torch.equal(nested.to_padded_tensor(0.0).cpu(), here.to_padded_tensor(0.0))
    assert nested.cpu().device.type == "cpu"
    assert here.to(D).device.type == D
    listed = torch.nested.as_nested_tensor([torch.ones(2, device=D), torch.ones(3, device=D)], layout=torch.jagged)
    assert listed.offsets().tolist() == [0, 2, 5]
    assert [part.shape[0] for part in listed.unbind()] == [2, 3]


def check_attention():
    shape = (1, 4, 6, 8)
    causal_mask = torch.ones(6, 6, dtype=torch.bool).tril()
    for mask, causal in ((None, False), (causal_mask, False), (torch.zeros(6, 6), False), (None, True)):
        torch.manual_seed(0)
        here = [torch.randn(shape, requires_grad=True) for _ in range(3)]
        there = [x.detach().to(D).requires_grad_() for x in here]
        for backend in (None, torch.nn.attention.SDPBackend.MATH):
            with torch.nn.attention.sdpa_kernel(backend) if backend else contextlib.nullcontext():
                theirs = F.scaled_dot_product_attention(*here, attn_mask=mask, is_causal=causal)
                ours = F.scaled_dot_product_attention(
                    *there, attn_mask=None if mask is None else mask.to(D), is_causal=causal
                )
            assert ours.stride() == theirs.stride()
            assert torch.equal(ours.cpu(), theirs)
            theirs.sum().backward()
            ours.sum().backward()
            for x, y in zip(here, there, strict=True):
                assert torch.equal(x.grad, y.grad.cpu())
    grouped = F.scaled_dot_product_attention(
        torch.randn(shape, device=D), *(torch.randn(1, 2, 6, 8, device=D) for _ in range(2)), enable_gqa=True
    )
    assert grouped.shape == shape
    with torch.autocast(D, dtype=torch.bfloat16):
        assert F.scaled_dot_product_attention(*there).dtype == torch.bfloat16


def check_optimizers():
    for cls, options in (
        (torch.optim.AdamW, {}),
        (torch.optim.AdamW, {"foreach": True}),
        (torch.optim.AdamW, {"fused": True}),
        (torch.optim.Adam, {"foreach": False}),
        (torch.optim.SGD, {"momentum": 0.9, "foreach": True}),
        (torch.optim.SGD, {"fused": True}),
    ):
        results = []
        for device in ("cpu", D):
            torch.manual_seed(0)
            linear = torch.nn.Linear(4, 4).to(device)
            optimizer = cls(linear.parameters(), lr=1e-2, **options)
            for _ in range(2):
                linear(torch.ones(2, 4, device=device)).pow(2).sum().backward()
                optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
            results.append(linear.weight.detach().cpu())
        assert torch.equal(*results), (cls, options)


def check_streams_and_events():
    stream, start, end = MODULE.Stream(), MODULE.Event(enable_timing=True), MODULE.Event(enable_timing=True)
    assert isinstance(stream, MODULE.Stream)
    assert isinstance(start, MODULE.Event)
    assert not isinstance(torch.ones(1), MODULE.Stream)
    default = MODULE.current_stream()
    assert stream != default
    with MODULE.stream(stream):
        assert MODULE.current_stream() == stream
        start.record()
        stream.wait_stream(default)
        end.record()
    assert MODULE.current_stream() == default
    MODULE.current_stream().wait_event(end)
    end.synchronize()
    assert end.query()
    assert stream.query()
    stream.synchronize()
    assert start.elapsed_time(end) >= 0
    torch.ones(2, device=D).record_stream(stream)
    with MODULE.stream(MODULE.Stream(device=1)):
        assert MODULE.current_device() == 1
    assert MODULE.current_device() == 0
    assert torch.accelerator.current_stream() == default


def check_memory_statistics():
    before, peak = MODULE.memory_allocated(), MODULE.max_memory_allocated()
    block = torch.empty(1 << 20, dtype=torch.uint8, device=D)
    assert MODULE.memory_allocated() == before + (1 << 20)
    assert MODULE.max_memory_allocated() >= max(peak, before + (1 << 20))
    assert MODULE.memory_reserved() >= MODULE.memory_allocated()
    free, total = MODULE.mem_get_info()
    assert 0 < free < total
    stats = MODULE.memory_stats()
    assert stats["allocated_bytes.all.current"] == MODULE.memory_allocated()
    if TORCH >= (2, 9):  # torch.accelerator has memory functions since then
        assert torch.accelerator.memory_allocated() == MODULE.memory_allocated()
    if TORCH >= (2, 10):
        assert torch.accelerator.get_memory_info() == MODULE.mem_get_info()
    del block
    assert MODULE.memory_allocated() == before
    MODULE.reset_peak_memory_stats()
    assert MODULE.max_memory_allocated() == before
    MODULE.reset_accumulated_memory_stats()
    assert MODULE.memory_allocated(1) == 0
    MODULE.empty_cache()
    if TORCH >= (2, 9):
        torch.accelerator.empty_cache()
    if D != "xpu" or TORCH >= (2, 10):  # torch.xpu has it since then
        MODULE.set_per_process_memory_fraction(0.0, 1)
        raises(torch.OutOfMemoryError, lambda: torch.ones(9, device=f"{D}:1"), "out of memory")
        MODULE.set_per_process_memory_fraction(1.0, 1)
    torch.ones(9, device=f"{D}:1")


def check_properties():
    properties = MODULE.get_device_properties(1)
    assert properties.name == MODULE.get_device_name() == SIMULATION.profile.device_label
    assert properties.total_memory == MODULE.mem_get_info()[1]
    assert properties.uuid == SIMULATION.profile.uuid(1)
    capability = MODULE.get_device_capability()
    assert isinstance(capability, dict if D == "xpu" else tuple)
    assert MODULE.is_bf16_supported()


def check_compile_runs_eagerly():
    def entropy(logits):
        p = logits.softmax(-1)
        return torch.logsumexp(logits, -1) - (p * logits).sum(-1)

    x = torch.randn(8, 16, device=D, requires_grad=True)
    compiled = torch.compile(entropy, dynamic=True)(x)
    assert torch.equal(compiled, entropy(x))
    compiled.sum().backward()
    assert x.grad.device.type == D


def check_many_threads():
    import threading

    failures = []

    def work(ordinal):
        try:
            MODULE.set_device(ordinal)
            for _ in range(20):
                x = torch.ones(4, device=D, requires_grad=True)
                assert x.device.index == ordinal
                F.dropout(x, 0.5).sum().backward()
        except Exception as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(ordinal,)) for ordinal in itertools.islice(itertools.cycle((0, 1)), 6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def check_fork_and_pickle():
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_sum_in_child) == 3.0


def _sum_in_child():
    return torch.ones(3, device=D).sum().item()
