// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/conversions.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/language/values/call.h"
#include "engine/language/values/tensor.h"

namespace vitrine::engine {

using kernels::DType;

PyValue PyConversions::concrete(PyValue value) {
    if (const auto* const slider = value.as<PySlider>()) {
        evaluation_.note("this number shapes the program: moving its slider makes another program");
        return slider->value;
    }
    return value;
}

bool PyConversions::truth(PyValue value) {
    switch (value.kind()) {
    case PyValue::Kind::None:
        return false;
    case PyValue::Kind::Ellipsis:
        return true;
    case PyValue::Kind::Bool:
    case PyValue::Kind::Int:
        return value.integer() != 0;
    case PyValue::Kind::Float:
        return value.real() != 0;
    case PyValue::Kind::Symbol: {
        if (const auto known = evaluation_.builder.real(value.node())) {
            return *known != 0;
        }
        fail("this depends on score, b, h, q_idx, kv_idx or a captured tensor, so Python cannot branch on it; use "
             "torch.where(condition, a, b), or & and | for conditions");
    }
    case PyValue::Kind::Object:
        break;
    }
    if (value.as<PySlider>() != nullptr) {
        return truth(concrete(value));
    }
    if (const auto* const string = value.as<PyString>()) {
        return !string->text.empty();
    }
    if (const auto* const items = value.as<PySequence>()) {
        return !items->items.empty();
    }
    if (const auto* const dict = value.as<PyDict>()) {
        return !dict->entries.empty();
    }
    if (const auto* const range = value.as<PyRangeValue>()) {
        return range->count > 0;
    }
    if (const auto* const tensor = value.as<PyTensor>()) {
        if (tensor->count() != 1) {
            fail(fmt::format("the truth of a tensor of shape {}; use .any() or .all()", tensor->shapeText()));
        }
        return elementAt(*tensor, offsetsOf(*tensor)[0]).number() != 0;
    }
    if (const auto* const ignored = value.as<PyIgnored>()) {
        evaluation_.note(fmt::format("'{}' is not known here and counts as true", ignored->what));
        return true;
    }
    if (value.as<PyArray>() != nullptr || value.as<PyRow>() != nullptr) {
        fail("Python cannot branch on values that are known only for each element; use torch.where(condition, a, b)");
    }
    return true;
}

std::int64_t PyConversions::integer(PyValue value, std::string_view what) {
    value = concrete(value);
    if (value.kind() == PyValue::Kind::Int || value.kind() == PyValue::Kind::Bool) {
        return value.integer();
    }
    if (const auto* const tensor = value.as<PyTensor>();
        tensor != nullptr && tensor->count() == 1 && !tensor->isReal()) {
        return integersOf(*tensor)[0];
    }
    if (value.isSymbol()) {
        if (const auto known = evaluation_.builder.integer(value.node())) {
            return *known;
        }
        fail(fmt::format("{} must be known before the program runs, and this depends on its inputs or captured tensors",
                         what));
    }
    fail(fmt::format("{} must be an integer, not {}", what, pyTypeName(value)));
}

double PyConversions::real(PyValue value, std::string_view what) {
    value = concrete(value);
    if (value.isNumber()) {
        return value.number();
    }
    if (const auto* const tensor = value.as<PyTensor>(); tensor != nullptr && tensor->count() == 1) {
        return elementsOf(*tensor)[0].number();
    }
    if (value.isSymbol()) {
        if (const auto known = evaluation_.builder.real(value.node())) {
            return *known;
        }
    }
    fail(fmt::format("{} must be a number known before the program runs, not {}", what, pyTypeName(value)));
}

std::string PyConversions::text(PyValue value, std::string_view what) {
    const auto* const string = value.as<PyString>();
    if (string == nullptr) {
        fail(fmt::format("{} must be a string, not {}", what, pyTypeName(value)));
    }
    return string->text;
}

DType PyConversions::dtype(PyValue value) {
    if (const auto* const made = value.as<PyDtype>()) {
        return made->dtype;
    }
    if (const auto* const builtin = value.as<PyBuiltin>()) {
        const std::string_view name = builtin->entry->name;
        const DType made = name == "int"     ? DType::I64
                           : name == "float" ? DType::F32
                           : name == "bool"  ? DType::Bool
                                             : DType::None;
        if (made != DType::None) {
            return made;
        }
    }
    fail(fmt::format("{} is no dtype; write torch.int32, torch.float32, torch.bool ...", pyTypeName(value)));
}

// Python's slice.indices().
SliceRange PyConversions::slice(const PySlice& slice, std::int64_t extent) {
    SliceRange made{0, slice.step.isNone() ? 1 : integer(slice.step, "a slice's step"), 0};
    if (made.step == 0 || made.step < -kMaxElements || made.step > kMaxElements) {
        fail("a slice's step must not be 0");
    }
    const bool backwards = made.step < 0;
    const auto bound = [&](PyValue value, std::int64_t otherwise) {
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

} // namespace vitrine::engine
