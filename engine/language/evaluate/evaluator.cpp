// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/evaluator.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "engine/language/evaluate/scope.h"
#include "engine/language/python/lexer.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramOp;
using kernels::ProgramType;

void ModEvaluator::step() {
    steps(1);
}

void ModEvaluator::steps(std::int64_t count) {
    steps_ += count;
    if (steps_ > kMaxModSteps) {
        fail(fmt::format("evaluation takes more than {} steps; give large tables as tensors by a safetensors file",
                         kMaxModSteps));
    }
}

void ModEvaluator::note(const std::string& what) {
    if (text_ == nullptr || !noted_.insert(what).second || noted_.size() > 100) {
        return;
    }
    const ModPlace place = placeOf(text_->file, range_.begin, range_.end);
    notes_.push_back(fmt::format("{}:{}:{}: {}", place.file, place.line, place.column, what));
}

ModError ModEvaluator::located(const base::BadInput& error, PyRange range) const {
    return errorAt(text_->file, range.begin, range.end, error.message());
}

void ModEvaluator::throwPoison(const ModPoison& poison) {
    throw ModError(poison.place, poison.what, poison.excerpt);
}

ModPoison* ModEvaluator::poison(const ModError& error) {
    auto* const made = heap_.make<ModPoison>();
    made->place = error.place();
    made->what = error.description();
    made->excerpt = error.excerpt();
    return made;
}

// Names.

std::optional<ModValue> ModEvaluator::lookUpGiven(std::string_view name) {
    const auto read = given_.find(name);
    if (read != given_.end()) {
        return ModValue(read->second);
    }
    const auto tensor = options_.tensors.find(name);
    if (tensor != options_.tensors.end()) {
        ModTensor* const made = tensorOfCapture(heap_, tensor->second);
        made->name = std::string(name);
        made->gradient = made->isReal();
        given_.emplace(std::string(name), made);
        return ModValue(made);
    }
    const auto integer = options_.integers.find(name);
    if (integer != options_.integers.end()) {
        // Sizes are no numbers of the text: what shows them moves them.
        return options_.sliders.contains(name) ? slid(name, ModValue::integer(integer->second))
                                               : ModValue::integer(integer->second);
    }
    return std::nullopt;
}

ModValue ModEvaluator::lookUp(std::string_view name) {
    for (ModScope* scope = scope_; scope != nullptr; scope = scope->parent) {
        const auto found = scope->names.find(name);
        if (found == scope->names.end() || (scope->isClass && scope != scope_)) {
            continue;
        }
        const bool global = scope->parent == nullptr;
        const ModPoison* const poisoned = found->second.as<ModPoison>();
        // What a file gives wins over a global that cannot be evaluated, and over a global tensor of its kind.
        const auto* const tensor = found->second.as<ModTensor>();
        if (global && (poisoned != nullptr || tensor != nullptr)) {
            const auto given = lookUpGiven(name);
            const auto* const other = given ? given->as<ModTensor>() : nullptr;
            if (given && (poisoned != nullptr || (other != nullptr && other->rank() == tensor->rank()))) {
                return *given;
            }
        }
        if (poisoned != nullptr) {
            throwPoison(*poisoned);
        }
        return found->second;
    }
    if (const auto given = lookUpGiven(name)) {
        return *given;
    }
    if (const ModBuiltinEntry* const entry = findBuiltin(name)) {
        auto* const made = heap_.make<ModBuiltin>();
        made->entry = entry;
        return made;
    }
    if (name == "__name__") {
        return heap_.string("vitrine");
    }
    if (name == "__file__") {
        return heap_.string(text_->file.name);
    }
    if (name == "torch" || name == "math" || name == "functools" || name == "itertools" || name == "operator") {
        auto* const made = heap_.make<ModModuleObject>();
        made->path = std::string(name);
        return made;
    }
    if (fallback_) {
        if (const auto found = fallback_(name)) {
            return *found;
        }
    }
    unknownName(name);
}

void ModEvaluator::unknownName(std::string_view name) {
    std::vector<std::string_view> known;
    for (const ModScope* scope = scope_; scope != nullptr; scope = scope->parent) {
        for (const auto& [other, value] : scope->names) {
            known.push_back(other);
        }
    }
    for (const auto& [other, value] : options_.tensors) {
        known.push_back(other);
    }
    if (knownNames_) {
        const std::vector<std::string_view> more = knownNames_();
        known.insert(known.end(), more.begin(), more.end());
    }
    const std::string similar = suggestion(name, known);
    fail(fmt::format("'{}' is not defined{}{}", name, similar,
                     similar.empty()
                         ? "; define it, or give it as a tensor of that name in a safetensors file (--tensors FILE)"
                         : " Else give it as a tensor of that name in a safetensors file (--tensors FILE)"));
}

ModValue ModEvaluator::slid(std::string_view name, ModValue value) {
    const bool whole = value.kind() == ModValue::Kind::Int;
    if (!whole && value.kind() != ModValue::Kind::Float) {
        return value;
    }
    if (std::none_of(numbers_.begin(), numbers_.end(), [name](const ModNumber& one) { return one.name == name; })) {
        numbers_.push_back({std::string(name), whole ? static_cast<double>(value.integer()) : value.number(), whole});
    }
    const auto slider = options_.sliders.find(name);
    if (slider == options_.sliders.end()) {
        return value;
    }
    ModSlider*& made = sliders_[std::string(name)];
    if (made == nullptr) {
        constexpr double kLargest = 2147483647.0;
        if (whole && !(std::fabs(slider->second) <= kLargest)) {
            fail(fmt::format("'{}' is {}; whole numbers of sliders have 32 bits", name, slider->second));
        }
        made = heap_.make<ModSlider>();
        made->value = whole ? ModValue::integer(std::llround(slider->second)) : ModValue::real(slider->second);
        const DType dtype = whole ? DType::I32 : DType::F64;
        ModTensor* const tensor = scalarTensor(heap_, dtype,
                                               whole ? kernels::intConstant(ProgramType::Int64, made->value.integer())
                                                     : kernels::floatConstant(slider->second));
        tensor->name = std::string(name);
        made->node = tensorNode(*tensor);
    }
    return made;
}

void ModEvaluator::bind(std::string_view name, ModValue value, ModScope& scope) {
    const auto elsewhere = scope.elsewhere.find(name);
    ModScope& target = elsewhere == scope.elsewhere.end() ? scope : *elsewhere->second;
    if (auto* const tensor = value.as<ModTensor>()) {
        if (tensor->name.empty()) {
            tensor->name = std::string(name);
        }
    }
    target.names[name] = target.parent == nullptr ? slid(name, value) : value;
}

// Calls.

bool ModEvaluator::isCallable(ModValue value) const {
    const ModObject* const object = value.object();
    if (object == nullptr) {
        return false;
    }
    switch (object->kind) {
    case ModKind::Function:
    case ModKind::Builtin:
    case ModKind::Partial:
    case ModKind::Combination:
    case ModKind::Class:
    case ModKind::Dtype:
    case ModKind::Ignored:
        return true;
    case ModKind::Instance:
        return value.as<ModInstance>()->type != nullptr &&
               const_cast<ModEvaluator*>(this)->findInClass(*value.as<ModInstance>()->type, "__call__", 0).has_value();
    default:
        return false;
    }
}

ModValue ModEvaluator::call(ModValue callee, std::vector<ModValue> arguments) {
    ModCall made;
    made.arguments = std::move(arguments);
    return call(callee, made);
}

ModValue ModEvaluator::call(ModValue callee, ModCall& call) {
    const Depth depth(*this);
    if (auto* const function = callee.as<ModFunction>()) {
        return callFunction(*function, call);
    }
    if (auto* const builtin = callee.as<ModBuiltin>()) {
        if (!builtin->self.isNone()) {
            call.arguments.insert(call.arguments.begin(), builtin->self);
        }
        const ModValue made = builtin->entry->call(*this, call);
        return builtin->inPlace ? written(*builtin, made) : made;
    }
    if (auto* const partial = callee.as<ModPartial>()) {
        ModCall all;
        all.arguments = partial->arguments;
        all.arguments.insert(all.arguments.end(), call.arguments.begin(), call.arguments.end());
        all.keywords = call.keywords;
        for (const auto& [name, value] : partial->keywords) {
            const auto same = [&name = name](const auto& given) { return given.first == name; };
            if (std::none_of(call.keywords.begin(), call.keywords.end(), same)) {
                all.keywords.emplace_back(name, value);
            }
        }
        return this->call(partial->callee, all);
    }
    if (auto* const combination = callee.as<ModCombination>()) {
        return callCombination(*combination, call);
    }
    if (auto* const type = callee.as<ModClass>()) {
        return callClass(*type, call);
    }
    if (callee.as<ModIgnored>() != nullptr) {
        return callee;
    }
    if (callee.as<ModInstance>() != nullptr && isCallable(callee)) {
        return this->call(attribute(callee, "__call__"), call);
    }
    if (const auto* const module = callee.as<ModModuleObject>();
        module != nullptr && module->path.rfind("torch.ops.", 0) == 0) {
        fail(
            fmt::format("the custom operator {} is not known; an operator that is called as a function of torch stands "
                        "for it (torch.ops.approx.tanh for torch.tanh), for others write the formula",
                        module->path));
    }
    fail(fmt::format("{} cannot be called", modTypeName(callee)));
}

ModValue ModEvaluator::written(const ModBuiltin& method, ModValue result) {
    auto* const target = method.self.as<ModTensor>();
    const std::string_view name = method.entry->name.substr(method.entry->name.rfind('.') + 1);
    if (target == nullptr || result.as<ModTensor>() == nullptr || (inProgram_ && !target->literal)) {
        fail(fmt::format("'{0}_' changes a value of the program in place; write x = x.{0}(...)", name));
    }
    assignTensor(*target, {result.as<ModTensor>(), {}});
    return method.self;
}

ModValue ModEvaluator::callCombination(ModCombination& masks, ModCall& call) {
    ModValue result = ModValue::boolean(masks.op == ProgramOp::And);
    for (const ModValue mask : masks.masks) {
        ModCall each = call;
        const ModValue value = this->call(mask, each);
        result = binary(masks.op, result, value);
    }
    return result;
}

ModValue ModEvaluator::callFunction(ModFunction& function, ModCall& call) {
    const PyFunction& code = *function.code;
    if (code.isAsync || code.isGenerator) {
        fail(fmt::format("'{}' is {}, which programs cannot use", code.name, code.isAsync ? "async" : "a generator"));
    }
    if (calls_ >= kMaxModNesting) {
        fail(fmt::format("more than {} nested calls", kMaxModNesting));
    }
    ModScope* const scope = heap_.scope(function.closure);
    bindArguments(function, call, *scope);
    ++calls_;
    const Inside inside(*this, function.text, scope);
    const ModFunction* const caller = std::exchange(running_, &function);
    ModValue result;
    try {
        if (code.result) {
            result = evaluate(*code.result);
        } else {
            returned_ = {};
            result = execute(code.body) == Flow::Return ? returned_ : ModValue();
            returned_ = {};
        }
    } catch (...) {
        --calls_;
        running_ = caller;
        throw;
    }
    --calls_;
    running_ = caller;
    return result;
}

// Before anything else: a misspelt keyword would look like a missing argument.
void ModEvaluator::checkKeywords(const PyFunction& code, const ModCall& call, const std::string& name) {
    std::vector<std::string_view> known;
    for (const PyParameter& parameter : code.parameters) {
        if (parameter.kind == PyParameter::Kind::VarKeyword) {
            return;
        }
        known.push_back(parameter.name);
    }
    for (const auto& [keyword, value] : call.keywords) {
        if (std::find(known.begin(), known.end(), keyword) == known.end()) {
            fail(fmt::format("{} has no argument '{}'{}", name, keyword, suggestion(keyword, known)));
        }
    }
}

void ModEvaluator::bindArguments(ModFunction& function, ModCall& call, ModScope& scope) {
    using Kind = PyParameter::Kind;
    const PyFunction& code = *function.code;
    const std::string name = code.name.empty() ? "this lambda" : fmt::format("'{}'", code.name);
    checkKeywords(code, call, name);
    std::vector<ModValue> positional = call.arguments;
    if (!function.self.isNone()) {
        positional.insert(positional.begin(), function.self);
    }
    std::vector<bool> used(call.keywords.size(), false);
    std::size_t next = 0;
    for (std::size_t i = 0; i < code.parameters.size(); ++i) {
        const PyParameter& parameter = code.parameters[i];
        if (parameter.kind == Kind::VarPositional) {
            scope.names[parameter.name] =
                heap_.tuple({positional.begin() + static_cast<std::ptrdiff_t>(std::min(next, positional.size())),
                             positional.end()});
            next = positional.size();
            continue;
        }
        if (parameter.kind == Kind::VarKeyword) {
            auto* const rest = heap_.make<ModDict>();
            for (std::size_t k = 0; k < call.keywords.size(); ++k) {
                if (!used[k]) {
                    used[k] = true;
                    rest->entries.emplace_back(heap_.string(std::string(call.keywords[k].first)),
                                               call.keywords[k].second);
                }
            }
            scope.names[parameter.name] = rest;
            continue;
        }
        std::optional<ModValue> value;
        if (parameter.kind != Kind::KeywordOnly && next < positional.size()) {
            value = positional[next++];
        }
        for (std::size_t k = 0; k < call.keywords.size() && parameter.kind != Kind::PositionalOnly; ++k) {
            if (call.keywords[k].first == parameter.name) {
                if (value) {
                    fail(fmt::format("{} gets its argument '{}' twice", name, parameter.name));
                }
                value = call.keywords[k].second;
                used[k] = true;
            }
        }
        if (!value && !parameter.value) {
            fail(fmt::format("{} needs its argument '{}'", name, parameter.name));
        }
        // Sliders move the arguments of factories; inside a program a parameter is what it was called with.
        const ModValue bound = value ? *value : function.defaults[i];
        bind(parameter.name, inProgram_ ? bound : slid(parameter.name, bound), scope);
    }
    if (next < positional.size()) {
        fail(fmt::format("{} takes {} arguments, {} were given", name, next, positional.size()));
    }
}

// Programs.

ModNode ModEvaluator::programResult(const ModText& text, const PyExpr& expr, ModValue function, bool isMask) {
    const Inside inside(*this, &text, scope_);
    range_ = expr.range;
    const std::string_view wanted = isMask ? "(b, h, q_idx, kv_idx)" : "(score, b, h, q_idx, kv_idx)";
    try {
        if (const auto* const block = function.as<ModInstance>(); block != nullptr && block->typeName == "BlockMask") {
            function = attribute(function, "mask_mod");
        }
        if (!isCallable(function)) {
            fail(fmt::format("this is {}; a {} is a function of {}", modTypeName(function),
                             isMask ? "mask_mod" : "score_mod", wanted));
        }
        if (const auto* const code = function.as<ModFunction>()) {
            std::size_t needed = 0;
            std::size_t taken = 0;
            bool any = false;
            for (const PyParameter& parameter : code->code->parameters) {
                any = any || parameter.kind == PyParameter::Kind::VarPositional;
                const bool positional =
                    parameter.kind == PyParameter::Kind::Normal || parameter.kind == PyParameter::Kind::PositionalOnly;
                needed += positional && !parameter.value ? 1 : 0;
                taken += positional ? 1 : 0;
            }
            const std::size_t self = code->self.isNone() ? 0 : 1;
            const std::size_t count = isMask ? 4 : 5;
            if (needed - std::min(needed, self) > count || (taken - std::min(taken, self) < count && !any)) {
                const bool other = needed - std::min(needed, self) == (isMask ? 5U : 4U);
                fail(fmt::format("'{}' takes {} arguments; a {} takes {}: {}{}", code->code->name,
                                 taken - std::min(taken, self), isMask ? "mask_mod" : "score_mod", count, wanted,
                                 other ? isMask ? "; this looks like a score_mod" : "; this looks like a mask_mod"
                                       : "; if it is a factory, choose a call of it, as \"factory(1024)\""));
            }
        }
        std::vector<ModValue> inputs;
        if (!isMask) {
            inputs.push_back(ModValue::symbol(builder_.input(ProgramOp::Score)));
        }
        for (const ProgramOp op : {ProgramOp::Batch, ProgramOp::Head, ProgramOp::Query, ProgramOp::Key}) {
            inputs.push_back(ModValue::symbol(builder_.input(op)));
        }
        inProgram_ = true;
        const ModValue result = call(function, inputs);
        range_ = expr.range;
        if (isCallable(result)) {
            fail("the function returns a function: it is a factory; choose a call of it, as \"factory(1024)\"");
        }
        if (result.isNone()) {
            fail("the program returns nothing; end it with 'return ...'");
        }
        if (result.kind() != ModValue::Kind::Symbol && !result.isNumber() && !isTensorLike(result) &&
            result.as<ModSlider>() == nullptr) {
            fail(fmt::format("the program returns {}, not a {}", modTypeName(result), isMask ? "boolean" : "score"));
        }
        const ModNode made = node(result);
        const ProgramType type = builder_.type(made);
        if (isMask && type != ProgramType::Bool) {
            fail(fmt::format("a mask_mod returns a boolean, this returns {}; compare it, as (... != 0)",
                             kernels::programTypeName(type)));
        }
        if (!isMask && type == ProgramType::Bool) {
            fail("a score_mod returns a number, this returns a boolean; use it as a mask_mod, or in torch.where(..., "
                 "score, -inf)");
        }
        return isMask ? made : builder_.cast(ProgramType::Float, made);
    } catch (const ModError&) {
        throw;
    } catch (const base::BadInput& error) {
        throw located(error, range_);
    }
}

std::vector<CapturedTensor> ModEvaluator::captures(const kernels::Program& program) const {
    std::vector<CapturedTensor> made;
    for (const kernels::ProgramCapture& capture : program.captures) {
        const ModTensor& tensor = *captured_.at(capture.name);
        CapturedTensor item;
        item.dtype = tensor.dtype;
        // Dimensions past the third are merged into it: see load().
        ModDims dims = tensor.dims;
        while (static_cast<int>(dims.size()) > kernels::kMaxCaptureRank) {
            dims[dims.size() - 2] *= dims.back();
            dims.pop_back();
        }
        item.shape = kernels::Shape(dims);
        item.data = bytesOfTensor(tensor);
        made.push_back(std::move(item));
    }
    return made;
}

} // namespace vitrine::engine
