// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of tensors: changes in place, conversions, shapes, numbers.
#include <fmt/format.h>

#include "engine/language/builtins/arguments.h"

namespace vitrine::engine {

namespace {

// In place.

PyValue fillWith(E& e, C& c) {
    PyTensor& tensor = changeable(e, c);
    const PyValue value = c.required(1, "value");
    c.finish();
    assignTensor(tensor, value.as<PyTensor>() != nullptr
                             ? TensorOperand{value.as<PyTensor>(), {}}
                             : TensorOperand{nullptr, kernels::floatConstant(e.convert.real(value, "the value"))});
    return c.required(0, "self");
}

PyValue zero(E& e, C& c) {
    PyTensor& tensor = changeable(e, c);
    c.finish();
    assignTensor(tensor, {nullptr, kernels::floatConstant(0)});
    return c.required(0, "self");
}

// Conversions.

template <DType To> PyValue convert(E& e, C& c) {
    const PyValue value = c.required(0, "self");
    return e.elements.cast(To, value);
}

/// x.to(dtype), x.to(device), x.to(other), x.type(dtype).
PyValue to(E& e, C& c) {
    const PyValue value = c.required(0, "self");
    std::optional<PyValue> dtype = c.keyword("dtype");
    for (std::size_t i = 1; i < c.arguments.size(); ++i) {
        const PyValue argument = c.required(i, "");
        if (argument.as<PyDtype>() != nullptr || argument.as<PyBuiltin>() != nullptr) {
            dtype = argument;
        } else if (isTensorLike(argument)) {
            return e.elements.cast(e.symbols.dtypeOf(argument), value);
        }
    }
    return dtype && !dtype->isNone() ? e.elements.cast(e.convert.dtype(*dtype), value) : value;
}

PyValue item(E& e, C& c) {
    const PyValue value = c.required(0, "self");
    c.finish();
    if (isSymbolic(e, value)) {
        fail(".item() of a value that is known only for each element or when the program runs; leave .item() away");
    }
    if (!isTensorLike(value)) {
        return value;
    }
    const PyTensor& tensor = *e.constants.tensor(value);
    if (tensor.count() != 1) {
        fail(fmt::format(".item() of a tensor of shape {}", tensor.shapeText()));
    }
    const kernels::ProgramConstant number = elementsOf(tensor)[0];
    return tensor.isReal()               ? PyValue::real(number.real)
           : tensor.dtype == DType::Bool ? PyValue::boolean(number.integer != 0)
                                         : PyValue::integer(number.integer);
}

PyValue toList(E& e, C& c) {
    const PyValue value = c.required(0, "self");
    if (dimsOf(value).empty()) {
        return item(e, c);
    }
    std::vector<PyValue> made;
    for (const PyValue part : e.containers.iterate(value)) {
        e.evaluation.step();
        C inner;
        inner.arguments.push_back(part);
        made.push_back(toList(e, inner));
    }
    return e.heap.list(std::move(made));
}

PyValue size(E& e, C& c) {
    const PyValue value = c.required(0, "self");
    const auto dim = c.optional(1, "dim");
    const PyValue shape = e.attributes.attribute(value, "shape");
    return dim ? e.containers.index(shape, *dim) : shape;
}

PyValue detach(E& e, C& c) {
    const PyValue value = c.required(0, "self");
    const auto* const tensor = value.as<PyTensor>();
    if (tensor == nullptr) {
        return value;
    }
    PyTensor* const made = viewOf(e.heap, *tensor);
    made->gradient = false;
    return made;
}

PyValue clone(E& e, C& c) {
    const PyValue value = c.required(0, "self");
    const auto* const tensor = value.as<PyTensor>();
    return tensor == nullptr ? value : PyValue(castTensor(e.heap, *tensor, tensor->dtype));
}

PyValue requireGradient(E& e, C& c) {
    const PyValue value = c.required(0, "self");
    const auto flag = c.optional(1, "requires_grad");
    if (auto* const tensor = value.as<PyTensor>()) {
        tensor->gradient = tensor->isReal() && (!flag || e.convert.truth(*flag));
    }
    return value;
}

constexpr std::array kTensorMethods = std::to_array<BuiltinEntry>({
    {"torch.masked_select",
     [](E& e, C& c) { return e.containers.index(c.required(0, "input"), c.required(1, "mask")); }},
    {"torch.numel",
     [](E& /*e*/, C& c) {
         std::int64_t count = 1;
         for (const std::int64_t dim : dimsOf(c.required(0, "input"))) {
             count *= dim;
         }
         return PyValue::integer(count);
     }},
    {"torch.clone", clone},
    {"torch.is_tensor", [](E& /*e*/, C& c) { return PyValue::boolean(isTensorLike(c.required(0, "object"))); }},
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
    {"Tensor.dim", [](E& e, C& c) { return e.attributes.attribute(c.required(0, "self"), "ndim"); }},
    {"Tensor.nelement",
     [](E& e, C& c) {
         return e.caller.call(e.attributes.attribute(c.required(0, "self"), "numel"), std::vector<PyValue>());
     }},
    {"Tensor.is_floating_point",
     [](E& e, C& c) { return PyValue::boolean(isRealDtype(e.symbols.dtypeOf(c.required(0, "self")))); }},
    {"Tensor.detach", detach},
    {"Tensor.requires_grad_", requireGradient},
    {"Tensor.contiguous", inputItself},
    {"Tensor.cuda", inputItself},
    {"Tensor.cpu", inputItself},
    {"Tensor.pin_memory", inputItself},
});

} // namespace

std::span<const BuiltinEntry> tensorBuiltins() {
    return kTensorMethods;
}

} // namespace vitrine::engine
