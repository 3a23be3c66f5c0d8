// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/interpreter.h"

#include <algorithm>
#include <fmt/format.h>

namespace vitrine::engine {

using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

std::string_view modKind(bool isMask) {
    return isMask ? "mask_mod" : "score_mod";
}

std::string_view inputNames(bool isMask) {
    return isMask ? "(b, h, q_idx, kv_idx)" : "(score, b, h, q_idx, kv_idx)";
}

/// Throws BadInput for a function that cannot be called with the inputs of a mask_mod or score_mod.
void checkParameters(const PyFunction& function, bool isMask) {
    std::size_t needed = 0;
    std::size_t taken = 0;
    bool any = false;
    for (const PyParameter& parameter : function.code->parameters) {
        any = any || parameter.kind == PyParameter::Kind::VarPositional;
        const bool positional =
            parameter.kind == PyParameter::Kind::Normal || parameter.kind == PyParameter::Kind::PositionalOnly;
        needed += positional && !parameter.value ? 1 : 0;
        taken += positional ? 1 : 0;
    }
    const std::size_t self = function.self.isNone() ? 0 : 1;
    needed -= std::min(needed, self);
    taken -= std::min(taken, self);
    const std::size_t count = isMask ? 4 : 5;
    if (needed > count || (taken < count && !any)) {
        const bool other = needed == (isMask ? 5U : 4U);
        fail(fmt::format("'{}' takes {} arguments; a {} takes {}: {}{}", function.code->name, taken, modKind(isMask),
                         count, inputNames(isMask),
                         other ? isMask ? "; this looks like a score_mod" : "; this looks like a mask_mod"
                               : "; if it is a factory, choose a call of it, as \"factory(1024)\""));
    }
}

} // namespace

Interpreter::Interpreter(const ProgramOptions& options, const BuiltinTable& builtins)
    : evaluation_(options),
      services_{evaluation_, evaluation_.heap, evaluation_.builder, convert_,    symbols_, elements_, constants_,
                classes_,    operators_,       containers_,         attributes_, calls_,   builtins},
      convert_(evaluation_), symbols_(evaluation_), elements_(evaluation_, convert_, symbols_),
      constants_(evaluation_, convert_, containers_), indexing_(evaluation_, convert_, symbols_, elements_, constants_),
      classes_(evaluation_, calls_), operators_(evaluation_, convert_, elements_, containers_, classes_, calls_),
      containers_(evaluation_, convert_, symbols_, indexing_, operators_, classes_, attributes_),
      modules_(evaluation_, builtins, outer_), attributes_(evaluation_, symbols_, classes_, modules_, calls_, builtins),
      names_(evaluation_, symbols_, builtins, outer_), expressions_(services_, names_, targets_, definitions_, skips_),
      targets_(services_, names_, expressions_), definitions_(services_, names_, expressions_, statements_),
      skips_(services_, names_), statements_(services_, names_, modules_, expressions_, targets_, definitions_, skips_),
      calls_(services_, names_, expressions_, statements_) {}

void Interpreter::runModule(const PyText& text, std::span<const PyStmt* const> statements, PyNamespace& scope) {
    const PlaceGuard inside(evaluation_, &text, &scope);
    for (const PyStmt* const statement : statements) {
        try {
            statements_.execute(*statement);
        } catch (const PyError& error) {
            if (evaluation_.anyName) {
                throw;
            }
            try {
                skips_.poisonModule(*statement, error, scope);
            } catch (const base::BadInput& bound) {
                throw evaluation_.located(bound, statement->range);
            }
        }
    }
}

PyValue Interpreter::evaluateIn(const PyText& text, const PyExpr& expr, PyNamespace& scope) {
    const PlaceGuard inside(evaluation_, &text, &scope);
    return expressions_.evaluate(expr);
}

PyValue Interpreter::chosenFunction(PyValue chosen, bool isMask) {
    if (const auto* const block = chosen.as<PyInstance>(); block != nullptr && block->typeName == "BlockMask") {
        chosen = attributes_.attribute(chosen, "mask_mod");
    }
    if (!classes_.isCallable(chosen)) {
        fail(fmt::format("this is {}; a {} is a function of {}", pyTypeName(chosen), modKind(isMask),
                         inputNames(isMask)));
    }
    if (const auto* const function = chosen.as<PyFunction>()) {
        checkParameters(*function, isMask);
    }
    return chosen;
}

PyValue Interpreter::callWithInputs(PyValue function, bool isMask) {
    std::vector<PyValue> inputs;
    if (!isMask) {
        inputs.push_back(PyValue::symbol(evaluation_.builder.input(ProgramOp::Score)));
    }
    for (const ProgramOp op : {ProgramOp::Batch, ProgramOp::Head, ProgramOp::Query, ProgramOp::Key}) {
        inputs.push_back(PyValue::symbol(evaluation_.builder.input(op)));
    }
    evaluation_.inProgram = true;
    return calls_.call(function, inputs);
}

NodeIndex Interpreter::resultNode(PyValue result, bool isMask) {
    if (classes_.isCallable(result)) {
        fail("the function returns a function: it is a factory; choose a call of it, as \"factory(1024)\"");
    }
    if (result.isNone()) {
        fail("the program returns nothing; end it with 'return ...'");
    }
    if (result.kind() != PyValue::Kind::Symbol && !result.isNumber() && !isTensorLike(result) &&
        result.as<PySlider>() == nullptr) {
        fail(fmt::format("the program returns {}, not a {}", pyTypeName(result), isMask ? "boolean" : "score"));
    }
    const NodeIndex made = symbols_.node(result);
    const ProgramType type = evaluation_.builder.type(made);
    if (isMask && type != ProgramType::Bool) {
        fail(fmt::format("a mask_mod returns a boolean, this returns {}; compare it, as (... != 0)",
                         kernels::programTypeName(type)));
    }
    if (!isMask && type == ProgramType::Bool) {
        fail("a score_mod returns a number, this returns a boolean; use it as a mask_mod, or in torch.where(..., "
             "score, -inf)");
    }
    return isMask ? made : evaluation_.builder.cast(ProgramType::Float, made);
}

NodeIndex Interpreter::programResult(const PyText& text, const PyExpr& expr, PyValue function, bool isMask) {
    const PlaceGuard inside(evaluation_, &text, evaluation_.scope);
    evaluation_.range = expr.range;
    try {
        const PyValue result = callWithInputs(chosenFunction(function, isMask), isMask);
        evaluation_.range = expr.range;
        return resultNode(result, isMask);
    } catch (const PyError&) {
        throw;
    } catch (const base::BadInput& error) {
        throw evaluation_.located(error, evaluation_.range);
    }
}

} // namespace vitrine::engine
