// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What Python's own constructs and builtins need of a value: its truth, an integer, a number, a string, a dtype.
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;

bool ModEvaluator::truth(ModValue value) {
    switch (value.kind()) {
    case ModValue::Kind::None:
        return false;
    case ModValue::Kind::Ellipsis:
        return true;
    case ModValue::Kind::Bool:
    case ModValue::Kind::Int:
        return value.integer() != 0;
    case ModValue::Kind::Float:
        return value.real() != 0;
    case ModValue::Kind::Symbol: {
        if (const auto known = builder_.real(value.node())) {
            return *known != 0;
        }
        fail("this depends on score, b, h, q_idx, kv_idx or a captured tensor, so Python cannot branch on it; use "
             "torch.where(condition, a, b), or & and | for conditions");
    }
    case ModValue::Kind::Object:
        break;
    }
    if (value.as<ModSlider>() != nullptr) {
        return truth(concrete(value));
    }
    if (const auto* const string = value.as<ModString>()) {
        return !string->text.empty();
    }
    if (const auto* const items = value.as<ModSequence>()) {
        return !items->items.empty();
    }
    if (const auto* const dict = value.as<ModDict>()) {
        return !dict->entries.empty();
    }
    if (const auto* const range = value.as<ModRange>()) {
        return range->count > 0;
    }
    if (const auto* const tensor = value.as<ModTensor>()) {
        if (tensor->count() != 1) {
            fail(fmt::format("the truth of a tensor of shape {}; use .any() or .all()", tensor->shapeText()));
        }
        return elementAt(*tensor, offsetsOf(*tensor)[0]).number() != 0;
    }
    if (value.as<ModArray>() != nullptr || value.as<ModRow>() != nullptr) {
        fail("Python cannot branch on values that are known only for each element; use torch.where(condition, a, b)");
    }
    return true;
}

std::int64_t ModEvaluator::integer(ModValue value, std::string_view what) {
    value = concrete(value);
    if (value.kind() == ModValue::Kind::Int || value.kind() == ModValue::Kind::Bool) {
        return value.integer();
    }
    if (const auto* const tensor = value.as<ModTensor>();
        tensor != nullptr && tensor->count() == 1 && !tensor->isReal()) {
        return integersOf(*tensor)[0];
    }
    if (value.isSymbol()) {
        if (const auto known = builder_.integer(value.node())) {
            return *known;
        }
        fail(fmt::format("{} must be known before the program runs, and this depends on its inputs or captured tensors",
                         what));
    }
    fail(fmt::format("{} must be an integer, not {}", what, modTypeName(value)));
}

double ModEvaluator::real(ModValue value, std::string_view what) {
    value = concrete(value);
    if (value.isNumber()) {
        return value.number();
    }
    if (const auto* const tensor = value.as<ModTensor>(); tensor != nullptr && tensor->count() == 1) {
        return elementsOf(*tensor)[0].number();
    }
    if (value.isSymbol()) {
        if (const auto known = builder_.real(value.node())) {
            return *known;
        }
    }
    fail(fmt::format("{} must be a number known before the program runs, not {}", what, modTypeName(value)));
}

std::string ModEvaluator::text(ModValue value, std::string_view what) {
    const auto* const string = value.as<ModString>();
    if (string == nullptr) {
        fail(fmt::format("{} must be a string, not {}", what, modTypeName(value)));
    }
    return string->text;
}

DType ModEvaluator::dtype(ModValue value) {
    if (const auto* const made = value.as<ModDtype>()) {
        return made->dtype;
    }
    if (const auto* const builtin = value.as<ModBuiltin>()) {
        const std::string_view name = builtin->entry->name;
        const DType made = name == "int"     ? DType::I64
                           : name == "float" ? DType::F32
                           : name == "bool"  ? DType::Bool
                                             : DType::None;
        if (made != DType::None) {
            return made;
        }
    }
    fail(fmt::format("{} is no dtype; write torch.int32, torch.float32, torch.bool ...", modTypeName(value)));
}

} // namespace vitrine::engine
