"""Layouts worth comparing, and why some hold less than others."""

from app.catalog.catalogue import Catalogue
from app.core.layout import Layout
from app.wizard.answers import Answers
from app.wizard.layout_losses import held_requests, losses_of
from app.wizard.matrix import MatrixRow, layouts_of_server, matrix, repeats_of_cache, usual_layouts
from app.wizard.sizing_request import to_request


def rows(catalogue: Catalogue, **answers: object) -> list[MatrixRow]:
    """Return the usual layouts of a case on its card."""
    request = to_request(Answers().with_changes(**answers), catalogue).request
    assert request is not None
    return list(matrix(request, [request.gpu], usual_layouts(request.model)))


def by_layout(found: list[MatrixRow], layout: Layout) -> int:
    """Return the place of a layout."""
    return next(place for place, row in enumerate(found) if row.layout == layout)


def test_every_layout_of_a_server_uses_all_its_cards(catalogue: Catalogue) -> None:
    """For every model of the catalogue, no layout leaves a card idle and none comes twice."""
    for model in catalogue.models.values():
        for cards in (1, 2, 4, 8):
            layouts = layouts_of_server(model.spec, cards)
            assert {layout.cards for layout in layouts} == {cards}
            assert len(set(layouts)) == len(layouts)


def test_special_layouts_come_where_the_model_profits(catalogue: Catalogue) -> None:
    """Experts spread only for experts; context parallelism only where a cache would be repeated."""
    llama, deepseek = (catalogue.models[name].spec for name in ("llama-3.3-70b", "deepseek-v3.2"))
    spread = Layout(data_parallel_size=8, enable_expert_parallel=True)
    contexts = Layout(tensor_parallel_size=8, decode_context_parallel_size=8)
    assert {spread, contexts} <= set(layouts_of_server(deepseek, 8))
    assert not {spread, contexts} & set(layouts_of_server(llama, 8))
    assert (repeats_of_cache(llama, 8), repeats_of_cache(deepseek, 8)) == (1, 8)


def test_a_copied_latent_cache_is_named_with_what_it_costs(catalogue: Catalogue) -> None:
    """TP 8 of DeepSeek-V3.2 stores its cache eight times; both ways out are named with factors."""
    found = rows(
        catalogue, model="deepseek-v3.2", gpu="h200", kv_cache_dtype="fp8", max_model_len=32768
    )
    losses = list(losses_of(found))[by_layout(found, Layout(tensor_parallel_size=8))]
    assert {loss.code for loss in losses} == {"latent_copied"}
    assert {loss.count for loss in losses} == {8}
    contexts = Layout(tensor_parallel_size=8, decode_context_parallel_size=8)
    spread = Layout(data_parallel_size=8, enable_expert_parallel=True)
    times = {loss.better: loss.times for loss in losses}
    assert set(times) == {contexts, spread}
    alone = held_requests(found[by_layout(found, Layout(tensor_parallel_size=8))].result)
    for better, factor in times.items():
        assert factor == held_requests(found[by_layout(found, better)].result) / alone


def test_copies_lose_by_their_weights(catalogue: Catalogue) -> None:
    """Two copies of Llama 3.3 70B hold a third of the pair, as each has weights of its own."""
    found = rows(
        catalogue, model="llama-3.3-70b", checkpoint="nvidia/Llama-3.3-70B-Instruct-FP8",
        gpu="rtx-pro-6000-server", max_model_len=8192,
    )  # fmt: skip
    losses = list(losses_of(found))
    (loss,) = losses[by_layout(found, Layout(replicas=2))]
    assert (loss.code, loss.count, loss.better) == (
        "weights_repeated", 2, Layout(tensor_parallel_size=2),
    )  # fmt: skip
    assert 2.8 < loss.times < 3.4
    assert losses[by_layout(found, Layout(tensor_parallel_size=2))] == ()


def test_replicated_heads_are_named(catalogue: Catalogue) -> None:
    """A model of four KV heads on eight cards stores each head twice."""
    model = next(
        each.slug
        for each in catalogue.models.values()
        if each.spec.num_key_value_heads == 4 and each.spec.num_experts
    )
    found = rows(catalogue, model=model, gpu="h200", max_model_len=8192)
    place = by_layout(found, Layout(tensor_parallel_size=8))
    row = found[place]
    assert repeats_of_cache(row.result.request.model, 8) == 2
    for loss in list(losses_of(found))[place]:
        assert (loss.code, loss.count) == ("heads_replicated", 2)


def test_a_layout_without_a_cause_is_not_blamed(catalogue: Catalogue) -> None:
    """Negative control: the best layout of every number of cards has no loss."""
    found = rows(catalogue, model="gpt-oss-120b", gpu="h200", max_model_len=8192)
    losses = list(losses_of(found))
    for cards in (1, 2, 4, 8):
        places = [place for place, row in enumerate(found) if row.layout.cards == cards]
        best = max(places, key=lambda place: held_requests(found[place].result))
        assert losses[best] == ()
