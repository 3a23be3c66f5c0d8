// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/modules.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <numbers>

#include "engine/language/python/lexer.h"
#include "engine/language/python/suggestion.h"

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
constexpr std::array<std::string_view, 46> kIgnoredMembers = {"Tensor",
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
                                                              "_DEFAULT_SPARSE_BLOCK_SIZE",
                                                              "disable",
                                                              "allow_in_graph",
                                                              "ignore",
                                                              "unused",
                                                              "custom_op",
                                                              "register_fake",
                                                              "autocast",
                                                              "profiler"};

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

std::optional<PyValue> torchMember(PyHeap& heap, std::string_view name) {
    for (const NamedDtype& item : kDtypes) {
        if (item.name == name && name != "BoolTensor") {
            auto* const made = heap.make<PyDtype>();
            made->dtype = item.dtype;
            return made;
        }
    }
    if (name == "newaxis") {
        return PyValue();
    }
    static constexpr std::array<std::string_view, 10> kModules = {
        "nn",       "functional", "attention", "special",           "ops",
        "autograd", "linalg",     "utils",     "_higher_order_ops", "distributed"};
    if (std::find(kModules.begin(), kModules.end(), name) != kModules.end()) {
        auto* const made = heap.make<PyModuleValue>();
        made->path = "torch." + std::string(name);
        return made;
    }
    if (std::find(kIgnoredMembers.begin(), kIgnoredMembers.end(), name) != kIgnoredMembers.end()) {
        return heap.ignored(name == "no_grad" || name == "inference_mode" ? "torch.no_grad"
                                                                          : "torch." + std::string(name));
    }
    return std::nullopt;
}

} // namespace

std::optional<PyValue> PyModules::find(const PyModuleValue& module, std::string_view name) const {
    PyHeap& heap = evaluation_.heap;
    const std::string& path = module.path;
    if (isIgnoredModule(path)) {
        const BuiltinEntry* const entry = builtins_.find(path + "." + std::string(name));
        return entry != nullptr ? makeBuiltin(heap, entry) : heap.ignored(path + "." + std::string(name));
    }
    if (path == "math" || path == "torch" || path == "numpy") {
        for (const NamedNumber& item : kNumbers) {
            if (item.name == name && name != "newaxis") {
                return PyValue::real(item.value);
            }
        }
    }
    const std::string full = path + "." + std::string(name);
    if (const BuiltinEntry* const entry = builtins_.find(full)) {
        return makeBuiltin(heap, entry);
    }
    if (startsWith(path, "torch.ops.") || path == "torch.ops") {
        // Custom operators: torch.ops.approx.tanh means torch.tanh.
        const BuiltinEntry* const entry = path == "torch.ops" ? nullptr : builtins_.find("torch." + std::string(name));
        if (entry != nullptr) {
            return makeBuiltin(heap, entry);
        }
        auto* const made = heap.make<PyModuleValue>();
        made->path = full;
        return made;
    }
    if (isFlexModule(path) || startsWith(path, "torch")) {
        if (const BuiltinEntry* const entry =
                builtins_.find(isFlexModule(path) ? std::string(name) : "torch." + std::string(name))) {
            return makeBuiltin(heap, entry);
        }
    }
    return startsWith(path, "torch") || isFlexModule(path) ? torchMember(heap, name) : std::nullopt;
}

PyValue PyModules::unknownMember(const PyModuleValue& module, std::string_view name) {
    // Modules of the catalogue's names: attn_gym.masks.causal_mask.
    if (module.path.find("torch") == std::string::npos && module.path != "math" && module.path != "functools") {
        if (outer_.find) {
            if (const auto found = outer_.find(name)) {
                return *found;
            }
        }
        auto* const inner = evaluation_.heap.make<PyModuleValue>();
        inner->path = module.path + "." + std::string(name);
        if (module.path == "random" || module.path.find("numpy") == 0) {
            failNotKnown(fmt::format(
                "{} is not supported: numbers of {} are not computed here; write them into the text, or bind "
                "the tensor by a safetensors file (--tensors FILE)",
                inner->path, module.path));
        }
        return inner;
    }
    failNotKnown(
        fmt::format("{}.{} is not supported{}", module.path, name, builtins_.suggestion(module.path + ".", name)));
}

void PyModules::importModules(const PyStmt& statement) {
    for (const PyAlias& alias : statement.aliases) {
        auto* const made = evaluation_.heap.make<PyModuleValue>();
        made->path = std::string(alias.asName.empty() ? alias.name.substr(0, alias.name.find('.')) : alias.name);
        const std::string_view name = alias.asName.empty() ? alias.name.substr(0, alias.name.find('.')) : alias.asName;
        evaluation_.scope->names[name] = made;
    }
}

void PyModules::importNames(const PyStmt& statement) {
    for (const PyAlias& alias : statement.aliases) {
        if (alias.name == "*") {
            continue; // names of torch and of the catalogue are known anyway
        }
        const std::string_view name = alias.asName.empty() ? alias.name : alias.asName;
        try {
            evaluation_.scope->names[name] = imported(statement.name, alias.name);
        } catch (const base::BadInput& error) {
            if (evaluation_.tries > 0) {
                throw; // as ImportError: the text says what to do without it
            }
            const auto* const known = dynamic_cast<const PyError*>(&error);
            evaluation_.scope->names[name] =
                evaluation_.poison(known != nullptr ? *known : evaluation_.located(error, alias.range));
        }
    }
}

PyValue PyModules::imported(std::string_view module, std::string_view name) {
    // A definition of the same name in one of the given files is what the import means.
    for (PyNamespace* scope = evaluation_.scope; scope != nullptr; scope = scope->parent) {
        const auto found = scope->names.find(name);
        if (found != scope->names.end() && found->second.as<PyPoison>() == nullptr) {
            return found->second;
        }
    }
    auto* const source = evaluation_.heap.make<PyModuleValue>();
    source->path = std::string(module);
    if (const auto found = find(*source, name)) {
        return *found;
    }
    if (outer_.find) {
        if (const auto found = outer_.find(name)) {
            return *found;
        }
    }
    failNotKnown(fmt::format(
        "'{}' of module '{}' is not known{}; give the file that defines it too, or bind a tensor of that name", name,
        module, suggestion(name, outer_.known ? outer_.known() : std::vector<std::string_view>{})));
}

} // namespace vitrine::engine
