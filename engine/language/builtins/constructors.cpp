// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's constructors of constant tensors.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

using E = ModEvaluator;
using C = ModCall;

/// Tensors made inside a program from numbers alone belong to the program; requires_grad asks for gradients.
ModValue made(E& e, C& c, ModTensor* tensor) {
    const auto gradient = c.keyword("requires_grad");
    c.finish();
    tensor->literal = e.inProgram();
    tensor->gradient = gradient && tensor->isReal() && e.truth(*gradient);
    return tensor;
}

std::optional<DType> wantedDtype(E& e, C& c) {
    const auto given = c.keyword("dtype");
    return given && !given->isNone() ? std::optional(e.dtype(*given)) : std::nullopt;
}

/// zeros(2, 3), zeros((2, 3)), zeros(size=(2, 3)).
ModDims sizes(E& e, C& c, std::size_t from) {
    ModDims dims;
    const auto named = c.keyword("size");
    std::vector<ModValue> items;
    if (named) {
        items = e.iterate(*named);
    } else {
        for (std::size_t i = from; i < c.arguments.size(); ++i) {
            items.push_back(c.required(i, ""));
        }
        if (items.size() == 1 && items[0].as<ModSequence>() != nullptr) {
            items = e.iterate(items[0]);
        }
    }
    for (const ModValue item : items) {
        dims.push_back(e.integer(item, "a tensor's size"));
    }
    return dims;
}

ModTensor* filled(E& e, DType dtype, ModDims dims, const ProgramConstant& value) {
    ModTensor* const tensor = newTensor(e.heap(), dtype, std::move(dims));
    assignTensor(*tensor, {nullptr, value});
    return tensor;
}

template <int Value> ModValue constantTensor(E& e, C& c) {
    const DType dtype = wantedDtype(e, c).value_or(DType::F32);
    const ModDims dims = sizes(e, c, 0);
    return made(e, c, filled(e, dtype, dims, kernels::intConstant(ProgramType::Int64, Value)));
}

/// zeros_like(x), x.new_zeros(...).
template <int Value> ModValue constantLike(E& e, C& c) {
    const ModValue like = c.required(0, "input");
    const DType dtype = wantedDtype(e, c).value_or(e.dtypeOf(like));
    return made(e, c, filled(e, dtype, e.dimsOf(like), kernels::intConstant(ProgramType::Int64, Value)));
}
template <int Value> ModValue newConstant(E& e, C& c) {
    const DType dtype = wantedDtype(e, c).value_or(e.dtypeOf(c.required(0, "self")));
    const ModDims dims = sizes(e, c, 1);
    return made(e, c, filled(e, dtype, dims, kernels::intConstant(ProgramType::Int64, Value)));
}

ModValue fullOf(E& e, C& c, ModDims dims, std::size_t at, std::optional<DType> otherwise) {
    const ModValue value = c.required(at, "fill_value");
    const DType natural = e.isTensorLike(value) || value.isNumber() || value.as<ModSlider>() != nullptr
                              ? value.kind() == ModValue::Kind::Float ? DType::F32 : e.dtypeOf(value)
                              : DType::F32;
    const DType dtype = wantedDtype(e, c).value_or(otherwise.value_or(natural));
    if (value.isSymbol() && dims.empty()) {
        return e.cast(dtype, value);
    }
    const double number = e.real(value, "fill_value");
    return made(e, c,
                filled(e, dtype, std::move(dims),
                       isRealDtype(dtype) ? kernels::floatConstant(number)
                                          : kernels::intConstant(ProgramType::Int64,
                                                                 e.integer(e.cast(DType::I64, value), "fill_value"))));
}

ModValue full(E& e, C& c) {
    ModDims dims;
    const ModValue size = c.required(0, "size");
    for (const ModValue item : size.as<ModSequence>() != nullptr ? e.iterate(size) : std::vector<ModValue>{size}) {
        dims.push_back(e.integer(item, "a tensor's size"));
    }
    return fullOf(e, c, dims, 1, std::nullopt);
}
ModValue fullLike(E& e, C& c) {
    const ModValue like = c.required(0, "input");
    return fullOf(e, c, e.dimsOf(like), 1, e.dtypeOf(like));
}

ModValue arange(E& e, C& c) {
    std::array<ModValue, 3> bounds = {ModValue::integer(0), ModValue::integer(0), ModValue::integer(1)};
    if (c.arguments.size() == 1) {
        bounds[1] = c.required(0, "end");
        bounds[0] = c.keyword("start").value_or(bounds[0]);
    } else {
        bounds[0] = c.optional(0, "start").value_or(bounds[0]);
        bounds[1] = c.required(1, "end");
        bounds[2] = c.optional(2, "step").value_or(bounds[2]);
    }
    bounds[2] = c.keyword("step").value_or(bounds[2]);
    bool whole = true;
    std::array<double, 3> numbers{};
    for (std::size_t i = 0; i < 3; ++i) {
        bounds[i] = e.concrete(bounds[i]);
        const auto* const tensor = bounds[i].as<ModTensor>();
        whole = whole && bounds[i].kind() != ModValue::Kind::Float && !(tensor != nullptr && tensor->isReal());
        numbers[i] = e.real(bounds[i], "a bound of arange()");
    }
    const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
    if (!(count >= 0) || count > static_cast<double>(kMaxModConstants)) {
        E::fail(fmt::format("arange() of {} elements; it makes at most {}", count, kMaxModConstants));
    }
    const DType dtype = wantedDtype(e, c).value_or(whole ? DType::I64 : DType::F32);
    ModTensor* const tensor = newTensor(e.heap(), dtype, {static_cast<std::int64_t>(count)});
    for (std::int64_t i = 0; i < tensor->count(); ++i) {
        const double value = numbers[0] + static_cast<double>(i) * numbers[2];
        setElement(*tensor, i, kernels::floatConstant(value));
    }
    return made(e, c, tensor);
}

/// Equal steps; logspace() takes `base` to their power.
template <bool Powers> ModValue linspace(E& e, C& c) {
    const double start = e.real(c.required(0, "start"), "the start");
    const double end = e.real(c.required(1, "end"), "the end");
    const std::int64_t count = e.integer(c.required(2, "steps"), "the number of steps");
    const auto base = Powers ? c.optional(3, "base") : std::nullopt;
    const double root = base ? e.real(*base, "the base") : 10;
    const DType dtype = wantedDtype(e, c).value_or(DType::F32);
    ModTensor* const tensor = newTensor(e.heap(), dtype, {count});
    const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
    for (std::int64_t i = 0; i < count; ++i) {
        // From both ends, as PyTorch does: the last element is `end` itself.
        const double value =
            i < count / 2 ? start + step * static_cast<double>(i) : end - step * static_cast<double>(count - 1 - i);
        setElement(*tensor, i, kernels::floatConstant(Powers ? std::pow(root, value) : value));
    }
    return made(e, c, tensor);
}

ModValue tensorFrom(E& e, C& c) {
    const ModValue data = c.required(0, "data");
    const std::optional<DType> dtype = wantedDtype(e, c);
    if (data.isSymbol() || data.as<ModRow>() != nullptr || data.as<ModArray>() != nullptr) {
        c.finish();
        return dtype ? e.cast(*dtype, data) : data;
    }
    ModTensor* const source = e.tensorOf(data, dtype);
    if (data.as<ModTensor>() != nullptr) {
        return source;
    }
    return made(e, c, source);
}

template <DType To> ModValue legacyTensor(E& e, C& c) {
    const ModValue data = c.required(0, "data");
    return made(e, c, e.tensorOf(data, To));
}

ModValue eye(E& e, C& c) {
    const std::int64_t rows = e.integer(c.required(0, "n"), "the number of rows");
    const auto given = c.optional(1, "m");
    const std::int64_t columns = given ? e.integer(*given, "the number of columns") : rows;
    ModTensor* const tensor = newTensor(e.heap(), wantedDtype(e, c).value_or(DType::F32), {rows, columns});
    for (std::int64_t i = 0; i < std::min(rows, columns); ++i) {
        setElement(*tensor, i * columns + i, kernels::intConstant(ProgramType::Int64, 1));
    }
    return made(e, c, tensor);
}

ModValue random(E&, C&) {
    E::fail("random numbers are not supported: they cannot equal PyTorch's; bind the tensor by its name from a "
            "safetensors file "
            "(--tensors FILE)");
}

ModValue scalar(E& e, C& c) {
    const ModValue data = c.required(1, "data");
    const DType dtype = wantedDtype(e, c).value_or(e.dtypeOf(c.required(0, "self")));
    return data.isSymbol() ? e.cast(dtype, data) : made(e, c, e.tensorOf(data, dtype));
}

ModValue parameter(E& e, C& c) {
    const ModValue data = c.required(0, "data");
    ModTensor* const tensor = e.tensor(data);
    tensor->gradient = tensor->isReal();
    return tensor;
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"torch.zeros", constantTensor<0>},
    {"torch.ones", constantTensor<1>},
    {"torch.empty", constantTensor<0>},
    {"torch.zeros_like", constantLike<0>},
    {"torch.ones_like", constantLike<1>},
    {"torch.empty_like", constantLike<0>},
    {"Tensor.new_zeros", newConstant<0>},
    {"Tensor.new_ones", newConstant<1>},
    {"Tensor.new_empty", newConstant<0>},
    {"Tensor.new_tensor", scalar},
    {"Tensor.new_full",
     [](E& e, C& c) {
         const DType dtype = e.dtypeOf(c.required(0, "self"));
         ModDims dims;
         for (const ModValue item : e.iterate(c.required(1, "size"))) {
             dims.push_back(e.integer(item, "a tensor's size"));
         }
         return fullOf(e, c, dims, 2, dtype);
     }},
    {"torch.full", full},
    {"torch.full_like", fullLike},
    {"torch.arange", arange},
    {"torch.linspace", linspace<false>},
    {"torch.logspace", linspace<true>},
    {"torch.tensor", tensorFrom},
    {"torch.as_tensor", tensorFrom},
    {"torch.asarray", tensorFrom},
    {"torch.scalar_tensor", tensorFrom},
    {"torch.IntTensor", legacyTensor<DType::I32>},
    {"torch.LongTensor", legacyTensor<DType::I64>},
    {"torch.FloatTensor", legacyTensor<DType::F32>},
    {"torch.BoolTensor", legacyTensor<DType::Bool>},
    {"torch.Tensor", legacyTensor<DType::F32>},
    {"torch.Parameter", parameter},
    {"torch.Buffer", parameter},
    {"torch.eye", eye},
    {"torch.rand", random},
    {"torch.randn", random},
    {"torch.randint", random},
    {"torch.randperm", random},
    {"torch.rand_like", random},
    {"torch.randn_like", random},
    {"torch.normal", random},
    {"torch.bernoulli", random},
    {"torch.multinomial", random},
});

} // namespace

std::span<const ModBuiltinEntry> constructorBuiltins() {
    return kTable;
}

ModTensor* ModEvaluator::tensor(ModValue value) {
    if (auto* const made = value.as<ModTensor>()) {
        return made;
    }
    if (value.isSymbol() || value.as<ModRow>() != nullptr || value.as<ModArray>() != nullptr) {
        fail("this operation needs a tensor known before the program runs; inside a program, index captured tensors by "
             "q_idx, "
             "kv_idx, b or h");
    }
    return tensorOf(value, std::nullopt);
}

namespace {

/// Shape and elements of nested lists.
void flatten(E& e, ModValue value, ModDims& dims, std::vector<ProgramConstant>& elements, std::size_t depth,
             DType& natural) {
    if (const auto* const items = value.as<ModSequence>(); items != nullptr || value.as<ModRange>() != nullptr) {
        const std::vector<ModValue> parts = e.iterate(value);
        if (depth >= 8) {
            E::fail("lists nested deeper than a tensor's dimensions");
        }
        if (dims.size() == depth) {
            dims.push_back(static_cast<std::int64_t>(parts.size()));
        } else if (dims[depth] != static_cast<std::int64_t>(parts.size()) || dims.size() < depth) {
            E::fail("nested lists of different lengths are no tensor");
        }
        for (const ModValue part : parts) {
            e.step();
            flatten(e, part, dims, elements, depth + 1, natural);
        }
        return;
    }
    value = e.concrete(value);
    if (const auto* const tensor = value.as<ModTensor>()) {
        const std::vector<ProgramConstant> inner = elementsOf(*tensor);
        if (dims.size() == depth) {
            dims.insert(dims.end(), tensor->dims.begin(), tensor->dims.end());
        }
        if (ModDims(dims.begin() + static_cast<std::ptrdiff_t>(depth), dims.end()) != tensor->dims) {
            E::fail("tensors of different shapes in a list are no tensor");
        }
        natural = natural == DType::None ? tensor->dtype : promoted(natural, tensor->dtype);
        elements.insert(elements.end(), inner.begin(), inner.end());
        return;
    }
    if (!value.isNumber() || dims.size() != depth) {
        E::fail(dims.size() != depth ? std::string("nested lists of different depths are no tensor")
                                     : fmt::format("{} in a tensor's data", modTypeName(value)));
    }
    const DType own = value.kind() == ModValue::Kind::Bool  ? DType::Bool
                      : value.kind() == ModValue::Kind::Int ? DType::I64
                                                            : DType::F32;
    natural = natural == DType::None ? own : promoted(natural, own);
    elements.push_back(own == DType::F32 ? kernels::floatConstant(value.real())
                                         : kernels::intConstant(ProgramType::Int64, value.integer()));
}

} // namespace

ModTensor* ModEvaluator::tensorOf(ModValue value, std::optional<DType> dtype) {
    if (auto* const made = value.as<ModTensor>()) {
        return dtype && *dtype != made->dtype ? castTensor(heap_, *made, *dtype) : made;
    }
    ModDims dims;
    std::vector<ProgramConstant> elements;
    DType natural = DType::None;
    flatten(*this, value, dims, elements, 0, natural);
    ModTensor* const made =
        fromElements(heap_, dtype.value_or(natural == DType::None ? DType::F32 : natural), dims, elements);
    made->literal = inProgram_;
    return made;
}

} // namespace vitrine::engine
