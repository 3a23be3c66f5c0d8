// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any bytes as a chat template: it is refused, or it runs over a conversation and prints valid UTF-8.

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/chat/jinja/parser.h"
#include "engine/chat/jinja/template_run.h"
#include "engine/tokenizer/unicode_text.h"

namespace base = vitrine::base;
namespace jinja = vitrine::engine::jinja;

namespace {

jinja::Value message(jinja::Heap& heap, const char* role, const char* content, jinja::Origin origin) {
    const jinja::Value out = heap.dict();
    out.dict().set(heap.string("role"), heap.string(jinja::Text(role, origin)));
    out.dict().set(heap.string("content"), heap.string(jinja::Text(content, origin)));
    return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view source(reinterpret_cast<const char*>(data), size);
    // Files are read as UTF-8 before they come here.
    if (!vitrine::engine::isValidUtf8(source)) {
        return 0;
    }
    try {
        const auto tree = jinja::parseTemplate(source);
        jinja::Heap heap;
        jinja::TemplateRun run(*tree, heap, std::tm{});
        const std::vector<std::pair<std::string, jinja::Value>> variables = {
            {"messages", heap.list({message(heap, "user", " Hi \xC3\xA9\n", jinja::kFirstMessage),
                                    message(heap, "assistant", "a, b", jinja::kFirstMessage + 1)})},
            {"bos_token", heap.string("<s>")},
            {"add_generation_prompt", jinja::Value::boolean(true)},
            {"tools", jinja::Value::none()},
            {"n", jinja::Value::integer(3)},
            {"f", jinja::Value::real(2.5)}};
        const jinja::Text text = run.render(variables);
        const bool matched = text.origins().empty() || text.origins().size() == text.size();
        if (!matched || !vitrine::engine::isValidUtf8(text.bytes())) {
            std::abort();
        }
    } catch (const base::BadInput&) {
        return 0;
    }
    return 0;
}
