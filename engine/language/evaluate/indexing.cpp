// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Subscripts: of lists, of constant tensors by constants (views, as PyTorch's), of captured tensors by symbols (loads).
#include <algorithm>
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;

std::vector<ModValue> ModEvaluator::indexItems(ModValue index) {
    const auto* const tuple = index.as<ModSequence>();
    return tuple != nullptr && tuple->kind == ModKind::Tuple ? tuple->items : std::vector<ModValue>{index};
}

// Python's slice.indices().
ModEvaluator::Slice ModEvaluator::slice(const ModSlice& slice, std::int64_t extent) {
    Slice made{0, slice.step.isNone() ? 1 : integer(slice.step, "a slice's step"), 0};
    if (made.step == 0 || made.step < -kMaxModConstants || made.step > kMaxModConstants) {
        fail("a slice's step must not be 0");
    }
    const bool backwards = made.step < 0;
    const auto bound = [&](ModValue value, std::int64_t otherwise) {
        if (value.isNone()) {
            return otherwise;
        }
        std::int64_t at = integer(value, "a slice's bound");
        at = at < -extent ? -extent - 1 : at;
        at += at < 0 ? extent : 0;
        return std::clamp<std::int64_t>(at, backwards ? -1 : 0, backwards ? extent - 1 : extent);
    };
    made.start = bound(slice.start, backwards ? extent - 1 : 0);
    const std::int64_t stop = bound(slice.stop, backwards ? -1 : extent);
    const std::int64_t span = backwards ? made.start - stop : stop - made.start;
    const std::int64_t pace = backwards ? -made.step : made.step;
    made.count = span <= 0 ? 0 : (span + pace - 1) / pace;
    return made;
}

ModValue ModEvaluator::indexSequence(const std::vector<ModValue>& items, ModValue index, ModKind kind) {
    if (const auto* const range = index.as<ModSlice>()) {
        const Slice part = slice(*range, static_cast<std::int64_t>(items.size()));
        std::vector<ModValue> made;
        made.reserve(static_cast<std::size_t>(part.count));
        for (std::int64_t i = 0; i < part.count; ++i) {
            made.push_back(items[static_cast<std::size_t>(part.start + i * part.step)]);
        }
        return kind == ModKind::List ? heap_.list(std::move(made)) : heap_.tuple(std::move(made));
    }
    if (index.isSymbol() && !builder_.integer(index.node())) {
        fail("a list cannot be indexed by a value that is known only for each element; make it a tensor: "
             "torch.tensor([...])");
    }
    const auto extent = static_cast<std::int64_t>(items.size());
    const std::int64_t at = integer(index, "an index");
    if (at < -extent || at >= extent) {
        fail(fmt::format("index {} of {} elements", at, extent));
    }
    return items[static_cast<std::size_t>(at < 0 ? at + extent : at)];
}

ModValue ModEvaluator::index(ModValue object, ModValue index) {
    if (auto* const tensor = object.as<ModTensor>()) {
        return indexTensor(*tensor, index);
    }
    if (auto* const base = object.as<ModRow>()) {
        const std::vector<ModValue> items = indexItems(index);
        const bool plain = std::all_of(items.begin(), items.end(), [](ModValue item) {
            return item.isSymbol() || item.kind() == ModValue::Kind::Int || item.as<ModSlider>() != nullptr;
        });
        if (!plain) {
            return indexArray(*array(object), index);
        }
        std::vector<ModNode> indices = base->indices;
        for (const ModValue item : items) {
            indices.push_back(node(item));
        }
        return row(*base->tensor, std::move(indices));
    }
    if (auto* const symbols = object.as<ModArray>()) {
        return indexArray(*symbols, index);
    }
    if (object.isSymbol()) {
        // x[None], x[...], x[()] of one number.
        ModArray one;
        one.elements.push_back(object.node());
        one.narrow = object.narrow();
        return indexArray(one, index);
    }
    if (const auto* const items = object.as<ModSequence>(); items != nullptr && items->kind != ModKind::Set) {
        return indexSequence(items->items, index, items->kind);
    }
    if (object.as<ModRange>() != nullptr) {
        return indexSequence(iterate(object), index, ModKind::Tuple);
    }
    if (const auto* const dict = object.as<ModDict>()) {
        for (const auto& [key, value] : dict->entries) {
            step();
            if (equal(key, index)) {
                return value;
            }
        }
        fail(fmt::format("the dict has no key {}", modText(index)));
    }
    if (const auto* const string = object.as<ModString>()) {
        std::vector<ModValue> characters;
        for (const char c : string->text) {
            characters.emplace_back(heap_.string(std::string(1, c)));
        }
        const ModValue made = indexSequence(characters, index, ModKind::List);
        if (const auto* const part = made.as<ModSequence>()) {
            std::string text;
            for (const ModValue item : part->items) {
                text += item.as<ModString>()->text;
            }
            return heap_.string(std::move(text));
        }
        return made;
    }
    if (const auto made = special(object, "__getitem__", {index})) {
        return *made;
    }
    if (object.as<ModIgnored>() != nullptr || object.as<ModClass>() != nullptr || object.as<ModBuiltin>() != nullptr) {
        return object; // list[int], Optional[Tensor]
    }
    fail(fmt::format("{} cannot be indexed", modTypeName(object)));
}

ModValue ModEvaluator::indexArray(ModArray& symbols, ModValue index) {
    // The positions as a constant tensor: its indexing picks elements.
    std::vector<std::int64_t> positions(symbols.elements.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
        positions[i] = static_cast<std::int64_t>(i);
    }
    for (const ModValue item : indexItems(index)) {
        if (item.isSymbol() && !builder_.integer(item.node())) {
            fail("values that are known only for each element cannot be indexed by another such value; index the "
                 "captured "
                 "tensor itself");
        }
    }
    ModTensor* const table = reshapeTensor(heap_, *fromIntegers(heap_, DType::I64, positions), symbols.dims);
    table->literal = true;
    const ModValue picked = indexTensor(*table, index);
    const ModTensor& chosen = *picked.as<ModTensor>();
    auto* const made = heap_.make<ModArray>();
    made->dims = chosen.dims;
    made->narrow = symbols.narrow;
    for (const std::int64_t at : integersOf(chosen)) {
        made->elements.push_back(symbols.elements[static_cast<std::size_t>(at)]);
    }
    return fromArray(made);
}

namespace {

/// How many dimensions of the tensor an item takes.
std::size_t takes(ModValue item) {
    if (item.isNone() || item.kind() == ModValue::Kind::Ellipsis || item.kind() == ModValue::Kind::Bool) {
        return 0;
    }
    const auto* const tensor = item.as<ModTensor>();
    return tensor != nullptr && tensor->dtype == DType::Bool ? tensor->dims.size() : 1;
}

} // namespace

// The constant part of an index, as views. Dimensions that a symbol or an index tensor takes are kept whole: keptDims says
// which of the result they are.
ModTensor* ModEvaluator::constantView(ModTensor& tensor, std::span<const ModValue> items, std::vector<int>& keptDims,
                                      std::vector<ModValue>& kept) {
    std::size_t taken = 0;
    for (const ModValue item : items) {
        taken += takes(item);
    }
    if (taken > tensor.dims.size()) {
        fail(fmt::format("{} indices for a tensor of shape {}", taken, tensor.shapeText()));
    }
    ModTensor* view = viewOf(heap_, tensor);
    int dim = 0;
    for (const ModValue item : items) {
        if (item.kind() == ModValue::Kind::Ellipsis) {
            dim += static_cast<int>(tensor.dims.size() - taken);
        } else if (item.isNone()) {
            view = unsqueezeTensor(heap_, *view, dim++);
        } else if (const auto* const range = item.as<ModSlice>()) {
            const Slice part = slice(*range, view->dims[static_cast<std::size_t>(dim)]);
            view = sliceTensor(heap_, *view, dim++, part.start, part.step, part.count);
        } else if (item.kind() == ModValue::Kind::Int || item.as<ModSlider>() != nullptr) {
            view = selectTensor(heap_, *view, dim, integer(item, "an index"));
        } else if (item.isSymbol() || item.as<ModTensor>() != nullptr || item.as<ModSequence>() != nullptr) {
            keptDims.push_back(dim);
            kept.push_back(item);
            dim += static_cast<int>(takes(item));
        } else {
            fail(fmt::format("a tensor cannot be indexed by {}", modTypeName(item)));
        }
    }
    return view;
}

ModValue ModEvaluator::indexTensor(ModTensor& tensor, ModValue index) {
    std::vector<ModValue> items = indexItems(index);
    bool symbolic = false;
    bool plain = true;
    bool several = false;
    bool positions = true;
    for (ModValue& item : items) {
        if (item.isSymbol()) {
            if (const auto known = builder_.integer(item.node())) {
                item = ModValue::integer(*known);
            }
        }
        const auto* const position = item.as<ModTensor>();
        const bool captured = position != nullptr && position->rank() == 0 && position->dtype != DType::Bool &&
                              inProgram_ && !position->literal;
        if (captured || (item.as<ModSlider>() != nullptr && inProgram_)) {
            item = ModValue::symbol(node(item));
        }
        const bool vector = item.as<ModArray>() != nullptr || item.as<ModRow>() != nullptr;
        several = several || vector;
        positions = positions && (vector || item.isSymbol() || item.kind() == ModValue::Kind::Int ||
                                  (position != nullptr && position->dtype != DType::Bool));
        symbolic = symbolic || vector || item.isSymbol();
        plain = plain && (item.isSymbol() || item.kind() == ModValue::Kind::Int);
    }
    const bool mixed = symbolic && std::any_of(items.begin(), items.end(),
                                               [](ModValue item) { return item.as<ModTensor>() != nullptr; });
    if (several || (mixed && positions)) {
        if (!positions || items.size() != tensor.dims.size()) {
            fail("several values that are known only for each element index a tensor only together with one number or "
                 "one such list for each of its dimensions");
        }
        return marked(narrowed(tensor.dtype), arrays(items, [&](std::span<const ModNode> nodes) {
                          return load(tensor, {nodes.begin(), nodes.end()});
                      }));
    }
    // Inside a program, elements at constant places are loads too: the contents may change without a new program.
    const bool whole = items.size() == tensor.dims.size() && inProgram_ && !tensor.literal;
    if (plain && (symbolic || whole || !tensor.storage)) {
        std::vector<ModNode> indices;
        indices.reserve(items.size());
        for (const ModValue item : items) {
            indices.push_back(node(item));
        }
        return row(tensor, std::move(indices));
    }
    std::vector<int> dims;
    std::vector<ModValue> kept;
    ModTensor* view = constantView(tensor, items, dims, kept);
    if (symbolic) {
        return loadedView(*view, dims, kept);
    }
    return kept.empty() ? ModValue(view) : ModValue(gathered(*view, dims, kept));
}

// Symbols beside slices: the symbols' dimensions go to the front, the rest is a row.
ModValue ModEvaluator::loadedView(ModTensor& view, std::span<const int> dims, std::span<const ModValue> kept) {
    ModDims order;
    std::vector<ModNode> indices;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (!kept[i].isSymbol()) {
            fail("an index of both tensors and values known only for each element; index in two steps");
        }
        order.push_back(dims[i]);
        indices.push_back(kept[i].node());
    }
    for (int d = 0; d < view.rank(); ++d) {
        if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
            order.push_back(d);
        }
    }
    return row(*permuteTensor(heap_, view, order), std::move(indices));
}

// NumPy's "advanced indexing" with the index tensors side by side: their dimensions stand where the first of them stood.
ModTensor* ModEvaluator::gathered(ModTensor& view, std::span<const int> dims, std::span<const ModValue> kept) {
    std::vector<const ModTensor*> indices;
    ModDims order, rest;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        const ModTensor* const position = tensorOf(kept[i], std::nullopt);
        if (position->dtype == DType::Bool) {
            const ModTensor* const places = nonzeroTensor(heap_, *position);
            for (int d = 0; d < position->rank(); ++d) {
                if (position->dims[static_cast<std::size_t>(d)] !=
                    view.dims.at(static_cast<std::size_t>(dims[i]) + static_cast<std::size_t>(d))) {
                    fail(fmt::format("a mask of shape {} for a tensor of shape {}", position->shapeText(),
                                     view.shapeText()));
                }
                indices.push_back(selectTensor(heap_, *places, 1, d));
                order.push_back(dims[i] + d);
            }
        } else {
            indices.push_back(position);
            order.push_back(dims[i]);
        }
    }
    const bool adjacent =
        std::adjacent_find(order.begin(), order.end(), [](auto a, auto b) { return b != a + 1; }) == order.end();
    const std::int64_t front = adjacent && !order.empty() ? order[0] : 0;
    for (std::int64_t d = 0; d < view.rank(); ++d) {
        if (std::find(order.begin(), order.end(), d) == order.end()) {
            rest.push_back(d);
        }
    }
    ModDims all = order;
    all.insert(all.end(), rest.begin(), rest.end());
    ModTensor* const made = gatherTensor(heap_, *permuteTensor(heap_, view, all), indices);
    // The picked dimensions lead; they go behind those that were in front of the first index.
    const std::int64_t lead = made->rank() - static_cast<std::int64_t>(rest.size());
    ModDims placed;
    for (std::int64_t d = 0; d < front; ++d) {
        placed.push_back(lead + d);
    }
    for (std::int64_t d = 0; d < lead; ++d) {
        placed.push_back(d);
    }
    for (std::int64_t d = lead + front; d < made->rank(); ++d) {
        placed.push_back(d);
    }
    return permuteTensor(heap_, *made, placed);
}

void ModEvaluator::assignItem(ModValue object, ModValue index, ModValue value) {
    if (auto* const tensor = object.as<ModTensor>()) {
        if (inProgram_ && !tensor->literal) {
            fail("a program cannot change a captured tensor; change it before, where it is made");
        }
        if (value.isSymbol() || value.as<ModRow>() != nullptr || value.as<ModArray>() != nullptr) {
            fail("a value that is known only for each element cannot be written into a tensor");
        }
        assignTensorItem(*tensor, indexItems(index), value);
        return;
    }
    if (auto* const list = object.as<ModSequence>(); list != nullptr && list->kind == ModKind::List) {
        if (index.as<ModSlice>() != nullptr) {
            fail("a slice of a list cannot be assigned to; build the list with + or append()");
        }
        const auto extent = static_cast<std::int64_t>(list->items.size());
        const std::int64_t at = integer(index, "an index");
        if (at < -extent || at >= extent) {
            fail(fmt::format("index {} of {} elements", at, extent));
        }
        list->items[static_cast<std::size_t>(at < 0 ? at + extent : at)] = value;
        return;
    }
    if (auto* const dict = object.as<ModDict>()) {
        for (auto& [key, entry] : dict->entries) {
            step();
            if (equal(key, index)) {
                entry = value;
                return;
            }
        }
        heap_.charge(2);
        dict->entries.emplace_back(index, value);
        return;
    }
    fail(fmt::format("an element of {} cannot be assigned to", modTypeName(object)));
}

void ModEvaluator::assignTensorItem(ModTensor& tensor, const std::vector<ModValue>& items, ModValue value) {
    std::vector<int> dims;
    std::vector<ModValue> kept;
    ModTensor* const view = constantView(tensor, items, dims, kept);
    const ModOperand source =
        value.as<ModSequence>() != nullptr ? ModOperand{tensorOf(value, tensor.dtype), {}} : operand(value);
    if (kept.empty()) {
        assignTensor(*view, source);
        return;
    }
    // Through the positions: the same index picks storage places of a table of them.
    ModTensor* const table = newTensor(heap_, DType::I64, view->dims);
    std::int64_t i = 0;
    for (const std::int64_t at : offsetsOf(*view)) {
        setElement(*table, i++, kernels::intConstant(kernels::ProgramType::Int64, at));
    }
    const ModTensor* const places = gathered(*table, dims, kept);
    ModTensor* const values = newTensor(heap_, tensor.dtype, places->dims);
    assignTensor(*values, source);
    const std::vector<kernels::ProgramConstant> elements = elementsOf(*values);
    std::size_t k = 0;
    for (const std::int64_t at : integersOf(*places)) {
        setElement(tensor, at, elements[k++]);
    }
}

} // namespace vitrine::engine
