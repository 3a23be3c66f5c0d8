// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any text of attention programs gives programs or PyError: the first line is the chosen expression, the rest the file.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/language/module.h"
#include "engine/language/python/tokens.h"

namespace {

using namespace vitrine::engine;

void choose(const PyModule& module, const std::string& expression, bool isMask) {
    try {
        const ChosenProgram program = isMask ? module.mask(expression) : module.score(expression);
        if (program.program.isMask() != isMask || program.captures.size() != program.program.captures.size()) {
            std::abort();
        }
    } catch (const PyError& error) {
        if (error.description().empty() || error.place().line < 1 || error.place().column < 1) {
            std::abort();
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    static_cast<void>(codeTokens(text));
    const std::size_t line = std::min(text.find('\n'), text.size());
    const PyFile file{"fuzz.py", text.substr(std::min(line + 1, text.size()))};
    try {
        const PyModule module = PyModule::parse(std::span(&file, 1));
        static_cast<void>(module.offers());
        choose(module, text.substr(0, line), true);
        choose(module, text.substr(0, line), false);
    } catch (const PyError& error) {
        if (error.description().empty()) {
            std::abort();
        }
    }
    return 0;
}
