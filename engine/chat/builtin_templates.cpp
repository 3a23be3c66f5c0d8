// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/builtin_templates.h"

#include <fmt/format.h>
#include <vector>

#include "base/error.h"

namespace vitrine::engine {

namespace {

/// Begins every template: what they have in common.
constexpr std::string_view kCommon = R"j(
{%- if tools %}{{ raise_exception('tools need a template of the model; give one with chat_template') }}{% endif %}
{%- macro text(message) %}{{ message.content if message.content is defined else '' }}{% endmacro %}
{%- set has_system = messages[0].role in ['system', 'developer'] %}
{%- set turns = messages[1:] if has_system else messages %}
)j";

/// Every message is <|start|>header<|message|>content<|end|>. Thoughts are dropped once a final answer followed.
constexpr std::string_view kHarmony = R"j(
{%- set effort = reasoning_effort if reasoning_effort is defined else 'medium' %}
{%- if effort not in ['low', 'medium', 'high'] %}{{ raise_exception('reasoning_effort must be low, medium or high') }}{% endif %}
{{- '<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: '
    ~ strftime_now('%Y-%m-%d') ~ '\n\nReasoning: ' ~ effort
    ~ '\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>' }}
{%- if has_system and text(messages[0]) %}
    {{- '<|start|>developer<|message|># Instructions\n\n' ~ text(messages[0]) ~ '<|end|>' }}
{%- endif %}
{%- set ns = namespace(call='', final=-1) %}
{%- for message in turns %}
    {%- if message.role == 'assistant' and not message.tool_calls %}{% set ns.final = loop.index0 %}{% endif %}
{%- endfor %}
{%- for message in turns %}
    {%- if message.role == 'assistant' %}
        {%- for part in [text(message), message.thinking or ''] %}
            {%- if '<|channel|>analysis<|message|>' in part or '<|channel|>final<|message|>' in part %}
                {{- raise_exception('the text of an assistant message has channel tags; put thoughts into "thinking" and the answer into "content"') }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {%- if message.role == 'user' %}
        {{- '<|start|>user<|message|>' ~ text(message) ~ '<|end|>' }}
    {%- elif message.role == 'tool' %}
        {%- set name = message.name or ns.call %}
        {%- if not name %}{{ raise_exception('a tool message must follow an assistant message with tool_calls') }}{% endif %}
        {{- '<|start|>functions.' ~ name ~ ' to=assistant<|channel|>commentary<|message|>' ~ text(message) ~ '<|end|>' }}
    {%- elif message.role == 'assistant' and message.tool_calls %}
        {%- if message.thinking and text(message) %}
            {{- raise_exception('an assistant message with tool_calls can have content or thinking, not both') }}
        {%- endif %}
        {%- set thought = message.thinking or text(message) %}
        {%- if thought and ns.final < loop.index0 %}
            {{- '<|start|>assistant<|channel|>analysis<|message|>' ~ thought ~ '<|end|>' }}
        {%- endif %}
        {%- for call in message.tool_calls %}
            {%- set function = call.function or call %}
            {{- '<|start|>assistant to=functions.' ~ function.name ~ '<|channel|>commentary json<|message|>'
                ~ (function.arguments if function.arguments is string else function.arguments | tojson) ~ '<|call|>' }}
            {%- set ns.call = function.name %}
        {%- endfor %}
    {%- elif message.role == 'assistant' %}
        {%- set ends = loop.last and not add_generation_prompt %}
        {%- if ends and message.thinking %}
            {{- '<|start|>assistant<|channel|>analysis<|message|>' ~ message.thinking ~ '<|end|>' }}
        {%- endif %}
        {{- '<|start|>assistant<|channel|>final<|message|>' ~ text(message) ~ ('<|return|>' if ends else '<|end|>') }}
        {%- set ns.call = '' %}
    {%- else %}
        {{- raise_exception('only the first message can be a system message; the others are of user, assistant or tool') }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}
)j";

constexpr std::string_view kChatMl = R"j(
{%- if has_system %}
    {{- '<|im_start|>system\n' ~ text(messages[0]) ~ '<|im_end|>\n' }}
{%- elif default_system %}
    {{- '<|im_start|>system\n' ~ default_system ~ '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(query=-1) %}
{%- for message in turns %}{% if message.role == 'user' %}{% set ns.query = loop.index0 %}{% endif %}{% endfor %}
{%- for message in turns %}
    {%- if message.role == 'tool' %}
        {%- if loop.first or loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
        {{- '\n<tool_response>\n' ~ text(message) ~ '\n</tool_response>' }}
        {%- if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\n' }}{% endif %}
        {%- continue %}
    {%- endif %}
    {{- '<|im_start|>' ~ message.role ~ '\n' }}
    {%- if message.role != 'assistant' %}
        {{- text(message) ~ '<|im_end|>\n' }}
        {%- continue %}
    {%- endif %}
    {%- set content = text(message) %}
    {%- if think_tags %}
        {%- set thought = message.thinking or '' %}
        {%- if not thought and '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.query and (loop.last or thought) %}
            {{- '<think>\n' ~ thought.strip('\n') ~ '\n</think>\n\n' }}
            {%- set content = content.lstrip('\n') %}
        {%- endif %}
    {%- endif %}
    {{- content }}
    {%- for call in message.tool_calls or [] %}
        {%- set function = call.function or call %}
        {{- ('\n' if content or not loop.first else '') ~ '<tool_call>\n{"name": "' ~ function.name ~ '", "arguments": '
            ~ (function.arguments if function.arguments is string else function.arguments | tojson) ~ '}\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if think_tags and enable_thinking is defined and not enable_thinking %}{{ '<think>\n\n</think>\n\n' }}{% endif %}
{%- endif %}
)j";

constexpr std::string_view kLlama3 = R"j(
{%- macro header(role) %}{{ '<|start_header_id|>' ~ role ~ '<|end_header_id|>\n\n' }}{% endmacro %}
{{- begin ~ header('system') ~ 'Cutting Knowledge Date: December 2023\nToday Date: ' ~ strftime_now('%d %b %Y') ~ '\n\n'
    ~ (text(messages[0]) | trim if has_system else '') ~ '<|eot_id|>' }}
{%- for message in turns %}
    {%- if message.tool_calls %}
        {%- if message.tool_calls | length != 1 %}{{ raise_exception('Llama 3 makes one tool call in a message') }}{% endif %}
        {%- set function = message.tool_calls[0].function or message.tool_calls[0] %}
        {{- header('assistant') ~ '{"name": "' ~ function.name ~ '", "parameters": '
            ~ (function.arguments if function.arguments is string else function.arguments | tojson) ~ '}' }}
    {%- elif message.role == 'tool' %}
        {{- header('ipython') ~ text(message) | tojson }}
    {%- else %}
        {{- header(message.role) ~ text(message) | trim }}
    {%- endif %}
    {{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ header('assistant') }}{% endif %}
)j";

/// Roles that take turns and call no tools: of Mistral and Gemma.
constexpr std::string_view kTurns = R"j(
{%- if has_system and refuses_system %}
    {{- raise_exception('this model takes no system message; put the text into the first user message') }}
{%- endif %}
{%- set ns = namespace(last=0) %}
{%- for message in turns %}
    {%- if message.role == 'tool' or message.tool_calls %}{{ raise_exception('this model calls no tools') }}{% endif %}
    {%- if message.role != ('user' if loop.index0 % 2 == 0 else 'assistant') %}
        {{- raise_exception('roles must alternate user, assistant, user, ...') }}
    {%- endif %}
    {%- if message.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}
{%- endfor %}
)j";

constexpr std::string_view kMistral = R"j(
{{- '<s>' }}
{%- if has_system and system_tokens %}
    {{- '[SYSTEM_PROMPT]' ~ after_open ~ text(messages[0]) ~ '[/SYSTEM_PROMPT]' }}
{%- endif %}
{%- for message in turns %}
    {%- if message.role == 'user' %}
        {{- '[INST]' ~ after_open }}
        {%- if has_system and not system_tokens and loop.index0 == (ns.last if system_last else 0) %}
            {{- text(messages[0]) ~ '\n\n' }}
        {%- endif %}
        {{- text(message) ~ before_close ~ '[/INST]' }}
    {%- else %}
        {{- after_open ~ text(message) ~ '</s>' }}
    {%- endif %}
{%- endfor %}
)j";

constexpr std::string_view kGemma = R"j(
{{- begin }}
{%- for message in turns %}
    {{- '<start_of_turn>' ~ ('model' if message.role == 'assistant' else message.role) ~ '\n' }}
    {%- if loop.first and has_system %}{{ text(messages[0]) ~ '\n\n' }}{% endif %}
    {{- text(message) | trim ~ '<end_of_turn>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}
)j";

/// Collects what a template is told about its model.
class Settings {
public:
    Settings& flag(std::string_view name, bool value) { return set(name, value ? "true" : "false"); }
    Settings& text(std::string_view name, std::string_view value) { return set(name, fmt::format("'{}'", value)); }
    const std::string& source() const { return source_; }

private:
    Settings& set(std::string_view name, std::string_view value) {
        source_ += fmt::format("{{%- set {} = {} %}}", name, value);
        return *this;
    }
    std::string source_;
};

struct Family {
    std::vector<std::string_view> needs; ///< tokens
    std::string source;
};

Family mistral(const Tokenizer& tokenizer) {
    const bool instIsToken = tokenizer.idOf("[INST]").has_value();
    const bool byteLevel = tokenizer.idOf("\xC4\xA0").has_value(); // "Ġ": the Tekken tokenizers
    const bool systemTokens = tokenizer.idOf("[SYSTEM_PROMPT]").has_value();
    const Settings settings = Settings()
                                  .flag("refuses_system", false)
                                  .flag("system_tokens", systemTokens)
                                  .flag("system_last", instIsToken && !systemTokens)
                                  .text("after_open", byteLevel ? "" : " ")
                                  .text("before_close", instIsToken ? "" : " ");
    return {{"<s>", "</s>"}, settings.source() + std::string(kTurns) + std::string(kMistral)};
}

Family familyOf(std::string_view name, std::string_view modelType, const Tokenizer& tokenizer) {
    const auto optional = [&](std::string_view piece) { return tokenizer.idOf(piece) ? piece : std::string_view(); };
    if (name == "harmony") {
        return {{"<|start|>", "<|channel|>", "<|message|>", "<|end|>"}, std::string(kHarmony)};
    }
    if (name == "chatml") {
        const Settings settings =
            Settings()
                .flag("think_tags", modelType.starts_with("qwen3"))
                .text("default_system", modelType.starts_with("qwen2") ? "You are a helpful assistant." : "");
        return {{"<|im_start|>", "<|im_end|>"}, settings.source() + std::string(kChatMl)};
    }
    if (name == "llama3") {
        const Settings settings = Settings().text("begin", optional("<|begin_of_text|>"));
        return {{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, settings.source() + std::string(kLlama3)};
    }
    if (name == "mistral") {
        return mistral(tokenizer);
    }
    if (name == "gemma") {
        const Settings settings = Settings()
                                      .flag("refuses_system", modelType == "gemma" || modelType == "gemma2")
                                      .text("begin", optional("<bos>"));
        return {{"<start_of_turn>", "<end_of_turn>"}, settings.source() + std::string(kTurns) + std::string(kGemma)};
    }
    throw base::Internal("a built-in chat template without a text");
}

} // namespace

std::optional<std::string_view> chooseBuiltInTemplate(std::string_view modelType, const Tokenizer& tokenizer) {
    const auto has = [&](std::string_view piece) { return tokenizer.idOf(piece).has_value(); };
    if (has("<|start|>") && has("<|channel|>") && has("<|message|>") && has("<|end|>")) {
        return "harmony";
    }
    if (has("<|im_start|>") && has("<|im_end|>")) {
        return "chatml";
    }
    if (has("<|start_header_id|>") && has("<|end_header_id|>") && has("<|eot_id|>")) {
        return "llama3";
    }
    if (has("<start_of_turn>") && has("<end_of_turn>")) {
        return "gemma";
    }
    if (has("</s>") && (has("[INST]") || modelType == "mistral" || modelType == "mixtral")) {
        return "mistral";
    }
    return std::nullopt;
}

ChatTemplate builtInTemplate(std::string_view name, std::string_view modelType, const Tokenizer& tokenizer) {
    const Family family = familyOf(name, modelType, tokenizer);
    for (const std::string_view piece : family.needs) {
        if (!tokenizer.idOf(piece)) {
            throw base::Unsupported(fmt::format(
                "tokenizer: the chat format needs the token {}, which this tokenizer does not have; choose another "
                "format, give a template with chat_template, or give raw text",
                piece));
        }
    }
    return {std::string(kCommon) + family.source, fmt::format("the built-in chat template {}", name)};
}

} // namespace vitrine::engine
