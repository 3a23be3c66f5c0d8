// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What stands behind a dot: members of modules, methods and properties.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numbers>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;

namespace {

struct NamedDtype {
    std::string_view name;
    DType dtype;
};
constexpr std::array<NamedDtype, 17> kDtypes = {{{"bool", DType::Bool},
                                                 {"uint8", DType::U8},
                                                 {"int8", DType::I8},
                                                 {"int16", DType::I16},
                                                 {"short", DType::I16},
                                                 {"int32", DType::I32},
                                                 {"int", DType::I32},
                                                 {"int64", DType::I64},
                                                 {"long", DType::I64},
                                                 {"float16", DType::F16},
                                                 {"half", DType::F16},
                                                 {"bfloat16", DType::BF16},
                                                 {"float32", DType::F32},
                                                 {"float", DType::F32},
                                                 {"float64", DType::F64},
                                                 {"double", DType::F64},
                                                 {"BoolTensor", DType::Bool}}};

struct NamedNumber {
    std::string_view name;
    double value;
};
constexpr std::array<NamedNumber, 6> kNumbers = {{{"pi", std::numbers::pi},
                                                  {"e", std::numbers::e},
                                                  {"tau", 2 * std::numbers::pi},
                                                  {"inf", std::numeric_limits<double>::infinity()},
                                                  {"nan", std::numeric_limits<double>::quiet_NaN()},
                                                  {"newaxis", 0}}};

/// Modules whose members no program needs: they can be named, called and thrown away.
constexpr std::array<std::string_view, 12> kIgnoredModules = {
    "typing",   "typing_extensions", "collections", "dataclasses", "enum",    "abc",
    "warnings", "logging",           "__future__",  "types",       "inspect", "contextlib"};

/// Members of torch that mean nothing to programs.
constexpr std::array<std::string_view, 38> kIgnoredMembers = {"Tensor",
                                                              "BoolTensor",
                                                              "IntTensor",
                                                              "LongTensor",
                                                              "FloatTensor",
                                                              "device",
                                                              "dtype",
                                                              "Size",
                                                              "Generator",
                                                              "manual_seed",
                                                              "set_default_device",
                                                              "set_default_dtype",
                                                              "set_float32_matmul_precision",
                                                              "no_grad",
                                                              "inference_mode",
                                                              "enable_grad",
                                                              "set_grad_enabled",
                                                              "cuda",
                                                              "backends",
                                                              "_dynamo",
                                                              "_inductor",
                                                              "_C",
                                                              "library",
                                                              "compiler",
                                                              "jit",
                                                              "version",
                                                              "__version__",
                                                              "Module",
                                                              "_compile",
                                                              "_check",
                                                              "use_deterministic_algorithms",
                                                              "flex_attention",
                                                              "AuxRequest",
                                                              "_mask_mod_signature",
                                                              "_score_mod_signature",
                                                              "AuxOutput",
                                                              "flex_attention_hop",
                                                              "_DEFAULT_SPARSE_BLOCK_SIZE"};

bool startsWith(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

bool isIgnoredModule(std::string_view path) {
    const std::string_view root = path.substr(0, path.find('.'));
    return std::find(kIgnoredModules.begin(), kIgnoredModules.end(), root) != kIgnoredModules.end();
}

bool isFlexModule(std::string_view path) {
    return startsWith(path, "torch.nn.attention") || path == "torch.nn.attention.flex_attention" ||
           path.find("flex_attention") != std::string_view::npos ||
           path.find("masking_utils") != std::string_view::npos;
}

ModValue makeBuiltin(ModHeap& heap, const ModBuiltinEntry* entry, ModValue self = {}) {
    auto* const made = heap.make<ModBuiltin>();
    made->entry = entry;
    made->self = self;
    return made;
}

std::optional<ModValue> torchMember(ModHeap& heap, std::string_view name) {
    for (const NamedDtype& item : kDtypes) {
        if (item.name == name && name != "BoolTensor") {
            auto* const made = heap.make<ModDtype>();
            made->dtype = item.dtype;
            return made;
        }
    }
    if (name == "newaxis") {
        return ModValue();
    }
    static constexpr std::array<std::string_view, 10> kModules = {
        "nn",       "functional", "attention", "special",           "ops",
        "autograd", "linalg",     "utils",     "_higher_order_ops", "distributed"};
    if (std::find(kModules.begin(), kModules.end(), name) != kModules.end()) {
        auto* const made = heap.make<ModModuleObject>();
        made->path = "torch." + std::string(name);
        return made;
    }
    if (std::find(kIgnoredMembers.begin(), kIgnoredMembers.end(), name) != kIgnoredMembers.end()) {
        return heap.ignored(name == "no_grad" || name == "inference_mode" ? "torch.no_grad"
                                                                          : "torch." + std::string(name));
    }
    return std::nullopt;
}

std::optional<ModValue> moduleMember(ModHeap& heap, const std::string& path, std::string_view name) {
    if (isIgnoredModule(path)) {
        const ModBuiltinEntry* const entry = findBuiltin(path + "." + std::string(name));
        return entry != nullptr ? makeBuiltin(heap, entry) : heap.ignored(path + "." + std::string(name));
    }
    if (path == "math" || path == "torch" || path == "numpy") {
        for (const NamedNumber& item : kNumbers) {
            if (item.name == name && name != "newaxis") {
                return ModValue::real(item.value);
            }
        }
    }
    const std::string full = path + "." + std::string(name);
    if (const ModBuiltinEntry* const entry = findBuiltin(full)) {
        return makeBuiltin(heap, entry);
    }
    if (startsWith(path, "torch.ops.") || path == "torch.ops") {
        // Custom operators: torch.ops.approx.tanh means torch.tanh.
        const ModBuiltinEntry* const entry = path == "torch.ops" ? nullptr : findBuiltin("torch." + std::string(name));
        if (entry != nullptr) {
            return makeBuiltin(heap, entry);
        }
        auto* const made = heap.make<ModModuleObject>();
        made->path = full;
        return made;
    }
    if (isFlexModule(path) || startsWith(path, "torch")) {
        if (const ModBuiltinEntry* const entry =
                findBuiltin(isFlexModule(path) ? std::string(name) : "torch." + std::string(name))) {
            return makeBuiltin(heap, entry);
        }
    }
    return startsWith(path, "torch") || isFlexModule(path) ? torchMember(heap, name) : std::nullopt;
}

} // namespace

std::optional<ModValue> ModEvaluator::findAttribute(ModValue object, std::string_view name) {
    if (const auto* const module = object.as<ModModuleObject>()) {
        return moduleMember(heap_, module->path, name);
    }
    if (object.as<ModIgnored>() != nullptr) {
        return object;
    }
    if (object.as<ModInstance>() != nullptr) {
        return memberOfInstance(object, name);
    }
    if (auto* const type = object.as<ModClass>()) {
        if (type->isAutogradFunction && name == "apply") {
            return findInClass(*type, "forward", 0);
        }
        if (name == "__name__") {
            return ModValue(heap_.string(std::string(type->name)));
        }
        const auto found = findInClass(*type, name, 0);
        const auto* const function = found ? found->as<ModFunction>() : nullptr;
        return function != nullptr && function->isClassMethod ? boundMember(*found, object) : found;
    }
    if (const auto* const parents = object.as<ModSuper>()) {
        return memberOfParents(*parents, name);
    }
    if (name == "value" && (object.isNumber() || object.as<ModString>() != nullptr)) {
        return object; // members of an Enum are their values
    }
    if (object.isNumber()) {
        const bool real = object.kind() == ModValue::Kind::Float;
        if (const ModBuiltinEntry* const entry = findBuiltin((real ? "float." : "int.") + std::string(name))) {
            return makeBuiltin(heap_, entry, object);
        }
    }
    if (isTensorLike(object)) {
        return tensorMember(object, name);
    }
    if (object.as<ModSlider>() != nullptr || object.isNumber()) {
        // Numbers where tensors are meant: q_idx may be one in a test of a program.
        return tensorMember(object, name);
    }
    if (const auto* const dtype = object.as<ModDtype>()) {
        if (name == "is_floating_point") {
            return ModValue::boolean(isRealDtype(dtype->dtype));
        }
        return name == "itemsize" ? std::optional(ModValue::integer(kernels::bitsOf(dtype->dtype) / 8)) : std::nullopt;
    }
    if (const auto* const function = object.as<ModFunction>()) {
        if (name == "__name__") {
            return ModValue(heap_.string(std::string(function->code->name)));
        }
        return heap_.ignored(std::string(name)); // register_fake, __doc__, cache_clear
    }
    if (const auto* const partial = object.as<ModPartial>()) {
        return name == "func" ? std::optional(partial->callee) : std::nullopt;
    }
    if (const auto* const builtin = object.as<ModBuiltin>(); builtin != nullptr && name != "__name__") {
        const ModBuiltinEntry* const entry = findBuiltin(fmt::format("{}.{}", builtin->entry->name, name));
        return entry != nullptr ? std::optional(makeBuiltin(heap_, entry)) : std::nullopt;
    }
    if (object.as<ModCombination>() != nullptr || object.as<ModBuiltin>() != nullptr) {
        return name == "__name__" ? std::optional<ModValue>(heap_.string(modText(object))) : std::nullopt;
    }
    if (const auto* const pair = object.as<ModSequence>(); pair != nullptr && pair->kind == ModKind::Tuple &&
                                                           pair->items.size() == 2 &&
                                                           (name == "values" || name == "indices")) {
        return pair->items[name == "values" ? 0 : 1]; // of sort(), topk(), max(dim)
    }
    const std::string_view prefix = object.as<ModString>() != nullptr ? "str."
                                    : object.as<ModDict>() != nullptr ? "dict."
                                                                      : "list.";
    const ModBuiltinEntry* const entry =
        object.object() == nullptr ? nullptr : findBuiltin(std::string(prefix) + std::string(name));
    return entry != nullptr ? std::optional(makeBuiltin(heap_, entry, object)) : std::nullopt;
}

std::optional<ModValue> ModEvaluator::memberOfInstance(ModValue object, std::string_view name) {
    auto* const instance = object.as<ModInstance>();
    const auto own = instance->attributes.find(name);
    if (own != instance->attributes.end()) {
        return own->second;
    }
    if (instance->type == nullptr) {
        return std::nullopt;
    }
    if (const auto found = findInClass(*instance->type, name, 0)) {
        return boundMember(*found, object);
    }
    const ModBuiltinEntry* const entry =
        instance->type->isModule ? findBuiltin("Module." + std::string(name)) : nullptr;
    return entry != nullptr ? std::optional(makeBuiltin(heap_, entry, object)) : std::nullopt;
}

std::optional<ModValue> ModEvaluator::tensorMember(ModValue object, std::string_view name) {
    if (name == "shape" || name == "ndim") {
        const ModDims dims = dimsOf(object);
        if (name == "ndim") {
            return ModValue::integer(static_cast<std::int64_t>(dims.size()));
        }
        std::vector<ModValue> items;
        for (const std::int64_t dim : dims) {
            items.push_back(ModValue::integer(dim));
        }
        return ModValue(heap_.tuple(std::move(items)));
    }
    if (name == "dtype") {
        auto* const made = heap_.make<ModDtype>();
        made->dtype = dtypeOf(object);
        return ModValue(made);
    }
    if (name == "device" || name == "layout" || name == "grad") {
        return heap_.ignored("device");
    }
    if (name == "is_cuda" || name == "requires_grad") {
        const auto* const tensor = object.as<ModTensor>();
        return ModValue::boolean(name == "requires_grad" && tensor != nullptr && tensor->gradient);
    }
    if (name == "T" || name == "mT") {
        const ModBuiltinEntry* const entry = findBuiltin("Tensor.t");
        ModCall call;
        call.arguments.push_back(object);
        return entry->call(*this, call);
    }
    const std::string text(name);
    const ModBuiltinEntry* entry = findBuiltin("Tensor." + text);
    if (entry == nullptr) {
        entry = findMethod(name);
    }
    const bool inPlace = entry == nullptr && name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
    if (inPlace) {
        entry = findMethod(name.substr(0, name.size() - 1));
    }
    if (entry == nullptr) {
        return std::nullopt;
    }
    const ModValue made = makeBuiltin(heap_, entry, object);
    made.as<ModBuiltin>()->inPlace = inPlace;
    return made;
}

ModValue ModEvaluator::attribute(ModValue object, std::string_view name) {
    if (const auto found = findAttribute(object, name)) {
        if (const auto* const poisoned = found->as<ModPoison>()) {
            throwPoison(*poisoned);
        }
        return *found;
    }
    if (const auto* const module = object.as<ModModuleObject>()) {
        // Modules of the catalogue's names: attn_gym.masks.causal_mask.
        if (module->path.find("torch") == std::string::npos && module->path != "math" && module->path != "functools") {
            if (fallback_) {
                if (const auto found = fallback_(name)) {
                    return *found;
                }
            }
            auto* const inner = heap_.make<ModModuleObject>();
            inner->path = module->path + "." + std::string(name);
            if (module->path == "random" || module->path.find("numpy") == 0) {
                fail(fmt::format(
                    "{} is not supported: numbers of {} are not computed here; write them into the text, or bind "
                    "the tensor by a safetensors file (--tensors FILE)",
                    inner->path, module->path));
            }
            return inner;
        }
        fail(fmt::format("{}.{} is not supported{}", module->path, name, builtinSuggestion(module->path + ".", name)));
    }
    const bool tensor = isTensorLike(object);
    fail(fmt::format("{} has no attribute '{}' here{}", modTypeName(object), name,
                     tensor ? builtinSuggestion("torch.", name) : std::string()));
}

} // namespace vitrine::engine
