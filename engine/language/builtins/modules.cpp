// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of torch.nn.Module, and dataclasses.field.

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

PyInstance& instanceOf(C& c) {
    auto* const made = c.required(0, "self").as<PyInstance>();
    if (made == nullptr) {
        fail("this is a method of a module");
    }
    return *made;
}

/// register_buffer(name, tensor), register_parameter.
PyValue registered(E& e, C& c) {
    const std::string name = e.convert.text(c.required(1, "name"), "the name");
    const PyValue value = c.required(2, "tensor");
    static_cast<void>(c.optional(3, "persistent"));
    if (auto* const tensor = value.as<PyTensor>(); tensor != nullptr && tensor->name.empty()) {
        tensor->name = name;
    }
    instanceOf(c).attributes[name] = value;
    return {};
}

PyValue moduleItself(E& /*e*/, C& c) {
    return c.required(0, "self");
}

PyValue fieldOf(E& e, C& c) {
    auto* const made = e.heap.make<PyInstance>();
    made->typeName = "dataclasses.field";
    for (const auto& [name, value] : c.keywords) {
        made->attributes[std::string(name)] = value;
    }
    return made;
}

constexpr std::array kModules = std::to_array<BuiltinEntry>({
    {"dataclasses.field", fieldOf},
    {"Module.register_buffer", registered},
    {"Module.register_parameter", registered},
    {"Module.to", moduleItself},
    {"Module.cuda", moduleItself},
    {"Module.cpu", moduleItself},
    {"Module.eval", moduleItself},
    {"Module.train", moduleItself},
    {"Module.requires_grad_", moduleItself},
});

} // namespace

std::span<const BuiltinEntry> moduleBuiltins() {
    return kModules;
}

} // namespace vitrine::engine
