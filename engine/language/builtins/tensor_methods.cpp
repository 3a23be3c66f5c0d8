// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of tensors: changes in place, conversions, shapes, numbers.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/language/evaluate/arguments.h"
#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramOp;

namespace {

using E = ModEvaluator;
using C = ModCall;

ModValue itself(E&, C& c) {
    return c.required(0, "input");
}

// In place.

ModValue fillWith(E& e, C& c) {
    ModTensor& tensor = changeable(e, c);
    const ModValue value = c.required(1, "value");
    c.finish();
    assignTensor(tensor, value.as<ModTensor>() != nullptr
                             ? ModOperand{value.as<ModTensor>(), {}}
                             : ModOperand{nullptr, kernels::floatConstant(e.real(value, "the value"))});
    return c.arguments[0];
}

ModValue zero(E& e, C& c) {
    ModTensor& tensor = changeable(e, c);
    c.finish();
    assignTensor(tensor, {nullptr, kernels::floatConstant(0)});
    return c.arguments[0];
}

// Conversions.

template <DType To> ModValue convert(E& e, C& c) {
    const ModValue value = c.required(0, "self");
    return e.cast(To, value);
}

/// x.to(dtype), x.to(device), x.to(other), x.type(dtype).
ModValue to(E& e, C& c) {
    const ModValue value = c.required(0, "self");
    std::optional<ModValue> dtype = c.keyword("dtype");
    for (std::size_t i = 1; i < c.arguments.size(); ++i) {
        const ModValue argument = c.required(i, "");
        if (argument.as<ModDtype>() != nullptr || argument.as<ModBuiltin>() != nullptr) {
            dtype = argument;
        } else if (e.isTensorLike(argument)) {
            return e.cast(e.dtypeOf(argument), value);
        }
    }
    return dtype && !dtype->isNone() ? e.cast(e.dtype(*dtype), value) : value;
}

ModValue item(E& e, C& c) {
    const ModValue value = c.required(0, "self");
    c.finish();
    if (isSymbolic(e, value)) {
        E::fail(".item() of a value that is known only for each element or when the program runs; leave .item() away");
    }
    if (!e.isTensorLike(value)) {
        return value;
    }
    const ModTensor& tensor = *e.tensor(value);
    if (tensor.count() != 1) {
        E::fail(fmt::format(".item() of a tensor of shape {}", tensor.shapeText()));
    }
    const kernels::ProgramConstant number = elementsOf(tensor)[0];
    return tensor.isReal()               ? ModValue::real(number.real)
           : tensor.dtype == DType::Bool ? ModValue::boolean(number.integer != 0)
                                         : ModValue::integer(number.integer);
}

ModValue toList(E& e, C& c) {
    const ModValue value = c.required(0, "self");
    if (e.dimsOf(value).empty()) {
        return item(e, c);
    }
    std::vector<ModValue> made;
    for (const ModValue part : e.iterate(value)) {
        e.step();
        C inner;
        inner.arguments.push_back(part);
        made.push_back(toList(e, inner));
    }
    return e.heap().list(std::move(made));
}

ModValue size(E& e, C& c) {
    const ModValue value = c.required(0, "self");
    const auto dim = c.optional(1, "dim");
    const ModValue shape = e.attribute(value, "shape");
    return dim ? e.index(shape, *dim) : shape;
}

ModValue detach(E& e, C& c) {
    const ModValue value = c.required(0, "self");
    const auto* const tensor = value.as<ModTensor>();
    if (tensor == nullptr) {
        return value;
    }
    ModTensor* const made = viewOf(e.heap(), *tensor);
    made->gradient = false;
    return made;
}

ModValue clone(E& e, C& c) {
    const ModValue value = c.required(0, "self");
    const auto* const tensor = value.as<ModTensor>();
    return tensor == nullptr ? value : ModValue(castTensor(e.heap(), *tensor, tensor->dtype));
}

ModValue requireGradient(E& e, C& c) {
    const ModValue value = c.required(0, "self");
    const auto flag = c.optional(1, "requires_grad");
    if (auto* const tensor = value.as<ModTensor>()) {
        tensor->gradient = tensor->isReal() && (!flag || e.truth(*flag));
    }
    return value;
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"torch.masked_select", [](E& e, C& c) { return e.index(c.required(0, "input"), c.required(1, "mask")); }},
    {"torch.numel",
     [](E& e, C& c) {
         std::int64_t count = 1;
         for (const std::int64_t dim : e.dimsOf(c.required(0, "input"))) {
             count *= dim;
         }
         return ModValue::integer(count);
     }},
    {"torch.clone", clone},
    {"torch.is_tensor", [](E& e, C& c) { return ModValue::boolean(e.isTensorLike(c.required(0, "object"))); }},
    {"Tensor.fill_", fillWith},
    {"Tensor.copy_", fillWith},
    {"Tensor.zero_", zero},
    {"Tensor.to", to},
    {"Tensor.type", to},
    {"Tensor.type_as", to},
    {"Tensor.int", convert<DType::I32>},
    {"Tensor.long", convert<DType::I64>},
    {"Tensor.short", convert<DType::I16>},
    {"Tensor.bool", convert<DType::Bool>},
    {"Tensor.float", convert<DType::F32>},
    {"Tensor.double", convert<DType::F64>},
    {"Tensor.half", convert<DType::F16>},
    {"Tensor.bfloat16", convert<DType::BF16>},
    {"Tensor.item", item},
    {"Tensor.tolist", toList},
    {"Tensor.size", size},
    {"Tensor.dim", [](E& e, C& c) { return e.attribute(c.required(0, "self"), "ndim"); }},
    {"Tensor.nelement",
     [](E& e, C& c) { return e.call(e.attribute(c.required(0, "self"), "numel"), std::vector<ModValue>()); }},
    {"Tensor.is_floating_point",
     [](E& e, C& c) { return ModValue::boolean(isRealDtype(e.dtypeOf(c.required(0, "self")))); }},
    {"Tensor.detach", detach},
    {"Tensor.requires_grad_", requireGradient},
    {"Tensor.contiguous", itself},
    {"Tensor.cuda", itself},
    {"Tensor.cpu", itself},
    {"Tensor.pin_memory", itself},
});

} // namespace

std::span<const ModBuiltinEntry> tensorBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
