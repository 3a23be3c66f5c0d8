// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// One operation on numbers, constant tensors, symbols and small arrays of symbols, whichever they are.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "engine/attention/mod_evaluator.h"
#include "engine/attention/mod_scope.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

constexpr std::int64_t kMaxArray = 1024; // elements of an array of symbols

ProgramConstant constantOf(ModValue value) {
    switch (value.kind()) {
    case ModValue::Kind::Bool:
        return kernels::boolConstant(value.integer() != 0);
    case ModValue::Kind::Int:
        return kernels::intConstant(ProgramType::Int64, value.integer());
    default:
        return kernels::floatConstant(value.real());
    }
}

ModValue numberOf(const ProgramConstant& constant) {
    switch (constant.type) {
    case ProgramType::Bool:
        return ModValue::boolean(constant.integer != 0);
    case ProgramType::Float:
        return ModValue::real(constant.real);
    default:
        return ModValue::integer(constant.integer);
    }
}

DType dtypeOfType(ProgramType type) {
    switch (type) {
    case ProgramType::Bool:
        return DType::Bool;
    case ProgramType::Int32:
        return DType::I32;
    case ProgramType::Int64:
        return DType::I64;
    case ProgramType::Float:
        break;
    }
    return DType::F32;
}

} // namespace

// Symbols.

ModNode ModEvaluator::constantNode(ModValue value) {
    switch (value.kind()) {
    case ModValue::Kind::Bool:
        return builder_.constant(value.integer() != 0);
    case ModValue::Kind::Int:
        return builder_.constant(value.integer());
    default:
        return builder_.constant(value.real());
    }
}

std::int32_t ModEvaluator::capture(ModTensor& tensor, ModDims dims) {
    const std::string base = tensor.name.empty() ? "constant" : tensor.name;
    for (int copy = 1;; ++copy) {
        const std::string name = copy == 1 ? base : fmt::format("{}_{}", base, copy);
        const auto found = captured_.find(name);
        if (found != captured_.end()) {
            const ModTensor& other = *found->second;
            const bool same = other.storage == tensor.storage && other.offset == tensor.offset &&
                              other.dims == tensor.dims && other.strides == tensor.strides &&
                              other.dtype == tensor.dtype && (tensor.storage != nullptr || &other == &tensor);
            if (!same) {
                continue;
            }
        }
        captured_.emplace(name, &tensor);
        kernels::ProgramCapture made;
        made.name = name;
        made.type = programTypeOf(tensor.dtype);
        made.rank = static_cast<int>(dims.size());
        made.differentiable = tensor.gradient && made.type == ProgramType::Float && gradients();
        return builder_.capture(made);
    }
}

ModNode ModEvaluator::tensorNode(ModTensor& tensor) {
    if (tensor.rank() != 0) {
        fail(fmt::format("a tensor of shape {} where one number is needed; index it", tensor.shapeText()));
    }
    if (tensor.literal && tensor.storage) {
        const ProgramConstant value = elementAt(tensor, tensor.offset);
        switch (value.type) {
        case ProgramType::Bool:
            return builder_.constant(value.integer != 0);
        case ProgramType::Float:
            return builder_.constant(value.real, false);
        default:
            return builder_.cast(value.type, builder_.constant(value.integer, false));
        }
    }
    return builder_.scalar(capture(tensor, {}));
}

// Loads have at most three indices: further dimensions are merged into the third, row-major.
ModNode ModEvaluator::load(ModTensor& tensor, std::vector<ModNode> indices) {
    ModDims dims = tensor.dims;
    while (static_cast<int>(dims.size()) > kernels::kMaxCaptureRank) {
        const ModNode last = indices.back();
        indices.pop_back();
        const ModNode row = builder_.binary(ProgramOp::Mul, indices.back(), builder_.constant(dims.back()));
        indices.back() = builder_.binary(ProgramOp::Add, row, last);
        dims[dims.size() - 2] *= dims.back();
        dims.pop_back();
    }
    return builder_.load(capture(tensor, dims), indices);
}

ModValue ModEvaluator::row(ModTensor& tensor, std::vector<ModNode> indices) {
    if (static_cast<int>(indices.size()) > tensor.rank()) {
        fail(fmt::format("{} indices for {}, a tensor of shape {}", indices.size(),
                         tensor.name.empty() ? "this" : "'" + tensor.name + "'", tensor.shapeText()));
    }
    for (const ModNode index : indices) {
        const ProgramType type = builder_.type(index);
        if (type != ProgramType::Int32 && type != ProgramType::Int64) {
            fail(fmt::format("an index must be an integer, not {}; convert it with .int()",
                             kernels::programTypeName(type)));
        }
    }
    if (static_cast<int>(indices.size()) == tensor.rank()) {
        return ModValue::symbol(load(tensor, std::move(indices)));
    }
    auto* const made = heap_.make<ModRow>();
    made->tensor = &tensor;
    made->indices = std::move(indices);
    return made;
}

ModNode ModEvaluator::node(ModValue value) {
    if (value.isSymbol()) {
        return value.node();
    }
    if (value.isNumber()) {
        return constantNode(value);
    }
    if (const auto* const slider = value.as<ModSlider>()) {
        return slider->node;
    }
    if (auto* const tensor = value.as<ModTensor>()) {
        return tensorNode(tensor->count() == 1 && tensor->rank() > 0 ? *reshapeTensor(heap_, *tensor, {}) : *tensor);
    }
    if (value.as<ModArray>() != nullptr || value.as<ModRow>() != nullptr) {
        const ModArray* const symbols = array(value);
        if (symbols->elements.size() == 1) {
            return symbols->elements[0];
        }
        fail(fmt::format("{} where one number is needed; index it or reduce it (.any(), .sum())", modTypeName(value)));
    }
    fail(fmt::format("{} where a number is needed", modTypeName(value)));
}

ModArray* ModEvaluator::array(ModValue value) {
    if (auto* const made = value.as<ModArray>()) {
        return made;
    }
    auto* const made = heap_.make<ModArray>();
    ModTensor* base = value.as<ModTensor>();
    std::vector<ModNode> prefix;
    if (const auto* const row = value.as<ModRow>()) {
        base = row->tensor;
        prefix = row->indices;
    }
    if (base == nullptr) {
        made->elements.push_back(node(value));
        return made;
    }
    made->dims.assign(base->dims.begin() + static_cast<std::ptrdiff_t>(prefix.size()), base->dims.end());
    std::int64_t count = 1;
    for (const std::int64_t dim : made->dims) {
        count *= dim;
        if (count > kMaxArray) {
            fail(fmt::format(
                "a tensor of shape {} would be read whole for each element; at most {} elements are, index it "
                "instead",
                base->shapeText(), kMaxArray));
        }
    }
    if (base->rank() == 0) {
        made->elements.push_back(tensorNode(*base));
        return made;
    }
    steps(count);
    for (std::int64_t i = 0; i < count; ++i) {
        std::vector<ModNode> indices = prefix;
        std::int64_t rest = i;
        indices.resize(prefix.size() + made->dims.size());
        for (std::size_t d = made->dims.size(); d-- > 0;) {
            indices[prefix.size() + d] = builder_.constant(rest % made->dims[d]);
            rest /= made->dims[d];
        }
        if (base->literal && prefix.empty()) {
            const ModTensor* const flat = reshapeTensor(heap_, *base, {count});
            made->elements.push_back(tensorNode(*selectTensor(heap_, *flat, 0, i)));
        } else {
            made->elements.push_back(load(*base, std::move(indices)));
        }
    }
    return made;
}

ModValue ModEvaluator::fromArray(ModArray* array) {
    return array->dims.empty() ? ModValue::symbol(array->elements.at(0)) : ModValue(array);
}

bool ModEvaluator::isTensorLike(ModValue value) const {
    return value.isSymbol() || value.as<ModTensor>() != nullptr || value.as<ModRow>() != nullptr ||
           value.as<ModArray>() != nullptr;
}

bool ModEvaluator::needsArray(std::span<const ModValue> values) {
    bool symbols = false;
    bool tensors = false;
    for (const ModValue value : values) {
        if (value.as<ModArray>() != nullptr || value.as<ModRow>() != nullptr) {
            return true;
        }
        const auto* const tensor = value.as<ModTensor>();
        tensors = tensors || (tensor != nullptr && tensor->rank() > 0);
        symbols = symbols || value.isSymbol();
    }
    return symbols && tensors;
}

// Inside a program, captured numbers stay captures: other contents must not make another program.
bool ModEvaluator::needsSymbol(std::span<const ModValue> values) {
    bool symbols = false;
    for (const ModValue value : values) {
        const auto* const tensor = value.as<ModTensor>();
        if (tensor != nullptr && tensor->rank() > 0) {
            return false;
        }
        symbols = symbols || value.isSymbol() ||
                  (inProgram_ && ((tensor != nullptr && !tensor->literal) || value.as<ModSlider>() != nullptr));
    }
    return symbols;
}

ModValue ModEvaluator::arrays(std::span<const ModValue> values,
                              const std::function<ModNode(std::span<const ModNode>)>& make) {
    std::vector<const ModArray*> parts;
    ModDims dims;
    for (const ModValue value : values) {
        parts.push_back(array(value));
        dims = broadcastDims(dims, parts.back()->dims);
    }
    auto* const made = heap_.make<ModArray>();
    made->dims = dims;
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) {
        count *= dim;
        if (count > kMaxArray) {
            fail(fmt::format("an array of shape ({}) for each element; at most {} elements are possible",
                             fmt::join(dims, ", "), kMaxArray));
        }
    }
    steps(count);
    for (std::int64_t i = 0; i < count; ++i) {
        std::vector<ModNode> operands;
        for (const ModArray* const part : parts) {
            std::int64_t rest = i;
            std::int64_t at = 0;
            std::int64_t stride = 1;
            for (std::size_t d = 0; d < part->dims.size(); ++d) {
                const std::int64_t extent = dims[dims.size() - 1 - d];
                const std::int64_t own = part->dims[part->dims.size() - 1 - d];
                at += own == 1 ? 0 : rest % extent * stride;
                stride *= own;
                rest /= extent;
            }
            operands.push_back(part->elements[static_cast<std::size_t>(at)]);
        }
        made->elements.push_back(make(operands));
    }
    return fromArray(made);
}

// Constants.

ModValue ModEvaluator::concrete(ModValue value) {
    if (const auto* const slider = value.as<ModSlider>()) {
        note("this number shapes the program: moving its slider makes another program");
        return slider->value;
    }
    return value;
}

ModOperand ModEvaluator::operand(ModValue value) {
    if (const auto* const tensor = value.as<ModTensor>()) {
        return {tensor, {}};
    }
    value = concrete(value);
    if (!value.isNumber()) {
        fail(fmt::format("{} where a number or a tensor is needed", modTypeName(value)));
    }
    return {nullptr, constantOf(value)};
}

ModValue ModEvaluator::sliderResult(ModValue number, ModNode node) {
    auto* const made = heap_.make<ModSlider>();
    made->value = number;
    made->node = node;
    return made;
}

// Element-wise operations.

ModValue ModEvaluator::binary(ProgramOp op, ModValue a, ModValue b) {
    const std::array<ModValue, 2> both = {a, b};
    if (needsArray(both)) {
        return arrays(both, [&](std::span<const ModNode> nodes) { return builder_.binary(op, nodes[0], nodes[1]); });
    }
    if (needsSymbol(both)) {
        const ModNode left = node(a);
        const ModNode right = node(b);
        return ModValue::symbol(builder_.binary(op, left, right));
    }
    if (a.as<ModTensor>() != nullptr || b.as<ModTensor>() != nullptr) {
        return elementwise(heap_, op, operand(a), operand(b));
    }
    const auto* const left = a.as<ModSlider>();
    const auto* const right = b.as<ModSlider>();
    if (left != nullptr || right != nullptr) {
        const ModValue x = left != nullptr ? left->value : a;
        const ModValue y = right != nullptr ? right->value : b;
        if (x.isNumber() && y.isNumber()) {
            const ModValue number = numberOf(kernels::foldPython(op, constantOf(x), constantOf(y)));
            return sliderResult(number, builder_.binary(op, node(a), node(b)));
        }
    }
    if (!a.isNumber() || !b.isNumber()) {
        fail(fmt::format("this operation does not take {} and {}", modTypeName(a), modTypeName(b)));
    }
    return numberOf(kernels::foldPython(op, constantOf(a), constantOf(b)));
}

ModValue ModEvaluator::unary(ProgramOp op, ModValue a) {
    const std::array<ModValue, 1> one = {a};
    if (needsArray(one)) {
        return arrays(one, [&](std::span<const ModNode> nodes) { return builder_.unary(op, nodes[0]); });
    }
    if (needsSymbol(one)) {
        return ModValue::symbol(builder_.unary(op, node(a)));
    }
    if (const auto* const tensor = a.as<ModTensor>()) {
        return elementwise(heap_, op, *tensor);
    }
    if (const auto* const slider = a.as<ModSlider>()) {
        return sliderResult(unary(op, slider->value), builder_.unary(op, slider->node));
    }
    if (!a.isNumber()) {
        fail(fmt::format("this operation does not take {}", modTypeName(a)));
    }
    ProgramConstant value = constantOf(a);
    const bool keeps = op == ProgramOp::Neg || op == ProgramOp::Abs || op == ProgramOp::Sign || op == ProgramOp::Not;
    if (op == ProgramOp::Not && value.type == ProgramType::Float) {
        fail("~ needs a boolean or an integer, not a float");
    }
    if (!keeps) {
        value = kernels::foldCast(ProgramType::Float, value);
    } else if (value.type == ProgramType::Bool) {
        value = kernels::foldCast(ProgramType::Int64, value); // ~True is -2 in Python, -True is -1
    }
    return numberOf(kernels::foldUnary(op, value));
}

ModValue ModEvaluator::select(ModValue condition, ModValue a, ModValue b) {
    const std::array<ModValue, 3> all = {condition, a, b};
    if (needsArray(all)) {
        return arrays(all,
                      [&](std::span<const ModNode> nodes) { return builder_.select(nodes[0], nodes[1], nodes[2]); });
    }
    if (needsSymbol(all)) {
        const ModNode which = node(condition);
        const ModNode yes = node(a);
        const ModNode no = node(b);
        return ModValue::symbol(builder_.select(which, yes, no));
    }
    if (const auto* const tensor = condition.as<ModTensor>()) {
        return whereTensor(heap_, *tensor, operand(a), operand(b));
    }
    const bool which = truth(condition);
    if (a.as<ModTensor>() != nullptr || b.as<ModTensor>() != nullptr) {
        ModTensor* const constant = scalarTensor(heap_, DType::Bool, kernels::boolConstant(which));
        constant->literal = true;
        return whereTensor(heap_, *constant, operand(a), operand(b));
    }
    return which ? a : b;
}

ModValue ModEvaluator::cast(DType dtype, ModValue value) {
    const std::array<ModValue, 1> one = {value};
    const ProgramType type = programTypeOf(dtype);
    if (needsArray(one)) {
        return arrays(one, [&](std::span<const ModNode> nodes) { return builder_.cast(type, nodes[0]); });
    }
    if (needsSymbol(one)) {
        return ModValue::symbol(builder_.cast(type, node(value)));
    }
    if (const auto* const tensor = value.as<ModTensor>()) {
        return tensor->dtype == dtype ? value : ModValue(castTensor(heap_, *tensor, dtype));
    }
    if (const auto* const slider = value.as<ModSlider>()) {
        return sliderResult(cast(dtype, slider->value), builder_.cast(type, slider->node));
    }
    if (!value.isNumber()) {
        fail(fmt::format("{} cannot be converted to a number", modTypeName(value)));
    }
    const ProgramType wide = type == ProgramType::Int32 ? ProgramType::Int64 : type;
    return numberOf(kernels::foldCast(wide, constantOf(value)));
}

ModDims ModEvaluator::dimsOf(ModValue value) {
    if (const auto* const tensor = value.as<ModTensor>()) {
        return tensor->dims;
    }
    if (const auto* const row = value.as<ModRow>()) {
        return {row->tensor->dims.begin() + static_cast<std::ptrdiff_t>(row->indices.size()), row->tensor->dims.end()};
    }
    const auto* const symbols = value.as<ModArray>();
    return symbols != nullptr ? symbols->dims : ModDims{};
}

DType ModEvaluator::dtypeOf(ModValue value) {
    if (const auto* const tensor = value.as<ModTensor>()) {
        return tensor->dtype;
    }
    if (const auto* const row = value.as<ModRow>()) {
        return row->tensor->dtype;
    }
    if (const auto* const symbols = value.as<ModArray>()) {
        return symbols->elements.empty() ? DType::F32 : dtypeOfType(builder_.type(symbols->elements[0]));
    }
    return dtypeOfType(builder_.type(node(value)));
}

// Python's operators.

ModValue ModEvaluator::operate(PyOperator op, ModValue a, ModValue b) {
    struct Meaning {
        PyOperator python;
        ProgramOp op;
        bool swapped;
    };
    static constexpr std::array<Meaning, 18> kMeanings = {{{PyOperator::Add, ProgramOp::Add, false},
                                                           {PyOperator::Sub, ProgramOp::Sub, false},
                                                           {PyOperator::Mul, ProgramOp::Mul, false},
                                                           {PyOperator::Div, ProgramOp::Div, false},
                                                           {PyOperator::FloorDiv, ProgramOp::FloorDiv, false},
                                                           {PyOperator::Mod, ProgramOp::Mod, false},
                                                           {PyOperator::Pow, ProgramOp::Pow, false},
                                                           {PyOperator::And, ProgramOp::And, false},
                                                           {PyOperator::Or, ProgramOp::Or, false},
                                                           {PyOperator::Xor, ProgramOp::Xor, false},
                                                           {PyOperator::ShiftLeft, ProgramOp::ShiftLeft, false},
                                                           {PyOperator::ShiftRight, ProgramOp::ShiftRight, false},
                                                           {PyOperator::Lt, ProgramOp::Lt, false},
                                                           {PyOperator::Le, ProgramOp::Le, false},
                                                           {PyOperator::Gt, ProgramOp::Lt, true},
                                                           {PyOperator::Ge, ProgramOp::Le, true},
                                                           {PyOperator::Eq, ProgramOp::Eq, false},
                                                           {PyOperator::Ne, ProgramOp::Ne, false}}};
    const auto plain = [this](ModValue value) {
        return value.isNumber() || value.as<ModSlider>() != nullptr || isTensorLike(value);
    };
    if (!plain(a) || !plain(b)) {
        return operateObjects(op, a, b);
    }
    const auto* const meaning =
        std::find_if(kMeanings.begin(), kMeanings.end(), [op](const Meaning& item) { return item.python == op; });
    if (meaning == kMeanings.end()) {
        fail("'@' of values is not supported; write torch.dot(a, b) for rows of captured tensors");
    }
    return meaning->swapped ? binary(meaning->op, b, a) : binary(meaning->op, a, b);
}

// Strings, lists and tuples.
ModValue ModEvaluator::operateObjects(PyOperator op, ModValue a, ModValue b) {
    if (op == PyOperator::Eq || op == PyOperator::Ne) {
        return ModValue::boolean(equal(a, b) == (op == PyOperator::Eq));
    }
    const auto* const left = a.as<ModSequence>();
    const auto* const right = b.as<ModSequence>();
    if (op == PyOperator::Add && left != nullptr && right != nullptr && left->kind == right->kind) {
        std::vector<ModValue> items = left->items;
        items.insert(items.end(), right->items.begin(), right->items.end());
        return left->kind == ModKind::List ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
    }
    const auto* const text = a.as<ModString>();
    const auto* const tail = b.as<ModString>();
    if (op == PyOperator::Add && text != nullptr && tail != nullptr) {
        return heap_.string(text->text + tail->text);
    }
    if (op == PyOperator::Mod && text != nullptr) {
        return heap_.string(text->text); // a message; what it formats means nothing here
    }
    if (op == PyOperator::Mul && (left != nullptr || right != nullptr)) {
        const ModSequence& sequence = left != nullptr ? *left : *right;
        const std::int64_t times =
            std::max<std::int64_t>(0, integer(left != nullptr ? b : a, "the number of repetitions"));
        const auto length = static_cast<std::int64_t>(sequence.items.size());
        if (length > 0 && times > kMaxModConstants / length) {
            heap_.charge(kMaxModConstants + 1);
        }
        std::vector<ModValue> items;
        heap_.charge(length * times);
        for (std::int64_t i = 0; i < times && length > 0; ++i) {
            items.insert(items.end(), sequence.items.begin(), sequence.items.end());
        }
        return sequence.kind == ModKind::List ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
    }
    const bool sets = left != nullptr && right != nullptr && left->kind == ModKind::Set && right->kind == ModKind::Set;
    if (sets && (op == PyOperator::Or || op == PyOperator::And || op == PyOperator::Sub)) {
        auto* const made = heap_.make<ModSequence>(ModKind::Set);
        const auto has = [this](const ModSequence& items, ModValue value) {
            return std::any_of(items.items.begin(), items.items.end(), [&](ModValue item) {
                step();
                return equal(item, value);
            });
        };
        for (const ModValue item : left->items) {
            if (op == PyOperator::Or || has(*right, item) == (op == PyOperator::And)) {
                made->items.push_back(item);
            }
        }
        for (const ModValue item : right->items) {
            if (op == PyOperator::Or && !has(*left, item)) {
                made->items.push_back(item);
            }
        }
        heap_.charge(static_cast<std::int64_t>(made->items.size()));
        return made;
    }
    if (op >= PyOperator::Lt && op <= PyOperator::Ge && text != nullptr && tail != nullptr) {
        const int order = text->text.compare(tail->text);
        return ModValue::boolean(op == PyOperator::Lt   ? order < 0
                                 : op == PyOperator::Le ? order <= 0
                                 : op == PyOperator::Gt ? order > 0
                                                        : order >= 0);
    }
    fail(fmt::format("this operator does not take {} and {}", modTypeName(a), modTypeName(b)));
}

ModValue ModEvaluator::logicalNot(ModValue value) {
    const std::array<ModValue, 1> one = {value};
    if (needsSymbol(one)) {
        return ModValue::symbol(builder_.unary(ProgramOp::Not, builder_.cast(ProgramType::Bool, node(value))));
    }
    return ModValue::boolean(!truth(value));
}

bool ModEvaluator::equal(ModValue a, ModValue b) {
    a = concrete(a);
    b = concrete(b);
    if (a.isNumber() && b.isNumber()) {
        return a.number() == b.number();
    }
    if (a.kind() != b.kind() || a.kind() != ModValue::Kind::Object) {
        return a.kind() == b.kind() && !a.isSymbol();
    }
    const auto* const left = a.as<ModString>();
    const auto* const right = b.as<ModString>();
    if (left != nullptr && right != nullptr) {
        return left->text == right->text;
    }
    const auto* const x = a.as<ModDtype>();
    const auto* const y = b.as<ModDtype>();
    if (x != nullptr && y != nullptr) {
        return x->dtype == y->dtype;
    }
    if (a.as<ModIgnored>() != nullptr && b.as<ModIgnored>() != nullptr) {
        return true; // devices: there is one
    }
    const auto* const items = a.as<ModSequence>();
    const auto* const others = b.as<ModSequence>();
    if (items != nullptr && others != nullptr && items->kind == others->kind && items != others) {
        const Depth depth(*this);
        return std::equal(items->items.begin(), items->items.end(), others->items.begin(), others->items.end(),
                          [this](ModValue p, ModValue q) {
                              step();
                              return equal(p, q);
                          });
    }
    return a.object() == b.object();
}

// What Python's own constructs need of a value.

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
