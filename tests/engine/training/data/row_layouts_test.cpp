// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/row_layouts.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/engine/checkpoint/log_capture.h"

namespace vitrine::engine {
namespace {

RowForm formOfRow(const std::string& json) {
    RowNotes notes;
    return readRowLayout(RowJson::parse(json), "f: line 1", notes);
}

/// "ROLE:CONTENT" of each message, with "+" or "-" before it where a flag says whether it is trained.
std::string chatOf(const std::string& json) {
    const RowForm form = formOfRow(json);
    EXPECT_EQ(form.kind, RowLayout::Chat);
    EXPECT_EQ(form.messages.size(), form.trained.size());
    std::string out;
    for (std::size_t i = 0; i < form.messages.size(); ++i) {
        const RowJson& message = form.messages[i];
        out += out.empty() ? "" : " ";
        out += !form.trained[i] ? "" : *form.trained[i] ? "+" : "-";
        out += message["role"].get<std::string>() + ":" +
               (message.contains("content") && message["content"].is_string() ? message["content"].get<std::string>()
                                                                              : "");
    }
    return out;
}

std::string layoutError(const std::string& json) {
    try {
        formOfRow(json);
    } catch (const base::Error& error) {
        return error.message();
    }
    return "no error";
}

TEST(RowLayouts, TextsAndCompletions) {
    EXPECT_EQ(formOfRow(R"({"text": "a", "url": "u"})").text, "a");
    const RowForm form = formOfRow(R"({"prompt": "2+2=", "completion": " 4", "id": 1})");
    EXPECT_EQ(form.kind, RowLayout::Completion);
    EXPECT_EQ(form.prompt, "2+2=");
    EXPECT_EQ(form.text, " 4");
}

TEST(RowLayouts, CompletionsOfMessagesAreTrainedWithoutTheirPrompt) {
    EXPECT_EQ(chatOf(R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                                    {"role": "user", "content": "c"}],
                         "completion": [{"role": "assistant", "content": "d"}]})"),
              "-user:a -assistant:b -user:c assistant:d");
}

TEST(RowLayouts, ShareGptHasSpeakers) {
    EXPECT_EQ(chatOf(R"({"system": "s", "conversations": [{"from": "human", "value": "a"},
                         {"from": "gpt", "value": "b", "weight": 0}, {"from": "user", "value": "c", "weight": 0},
                         {"from": "chatgpt", "value": "d", "train": true}, {"from": "observation", "value": "e"}]})"),
              "system:s user:a -assistant:b -user:c +assistant:d tool:e");
    EXPECT_EQ(chatOf(R"({"conversations": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"),
              "user:a assistant:b");
    EXPECT_EQ(chatOf(R"({"messages": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})"),
              "user:a assistant:b");
}

TEST(RowLayouts, CallsOfShareGptBecomeToolCallsInTheirOrder) {
    const RowForm form = formOfRow(R"({"tools": "[{\"name\": \"f\", \"a\": 1}]", "conversations": [
        {"from": "human", "value": "a"},
        {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"z\": 1, \"a\": 2}}"},
        {"from": "function_response", "value": "{}"}, {"from": "gpt", "value": "b"}]})");
    EXPECT_EQ(
        form.messages[1].dump(),
        R"({"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"z":1,"a":2}}}]})");
    EXPECT_EQ(form.messages[2]["role"], "tool");
    EXPECT_EQ(RowJson(form.tools).dump(), R"([{"name":"f","a":1}])");
    EXPECT_FALSE(form.trained[1]);
}

TEST(RowLayouts, InstructionsAreConversations) {
    EXPECT_EQ(chatOf(R"({"instruction": "i", "input": "", "output": "o"})"), "user:i assistant:o");
    EXPECT_EQ(chatOf(R"({"instruction": "i", "input": "n", "output": "o", "category": "c"})"), "user:i\nn assistant:o");
    EXPECT_EQ(chatOf(R"({"instruction": "i", "output": "o", "system": "s", "history": [["a", "b"]]})"),
              "system:s user:a assistant:b user:i assistant:o");
}

TEST(RowLayouts, MessagesSayWhetherTheyAreTrained) {
    EXPECT_EQ(chatOf(R"({"messages": [{"role": "user", "content": "a", "train": false},
                         {"role": "assistant", "content": "b", "weight": 0},
                         {"role": "assistant", "content": "c", "weight": 1.0, "train": true},
                         {"role": "assistant", "content": "d", "weight": null}]})"),
              "-user:a -assistant:b +assistant:c assistant:d");
}

TEST(RowLayouts, SeveralSystemMessagesStay) {
    EXPECT_EQ(chatOf(R"({"messages": [{"role": "system", "content": "a"}, {"role": "system", "content": "b"},
                         {"role": "user", "content": "c"}]})"),
              "system:a system:b user:c");
}

TEST(RowLayouts, TokensHaveMarksOfOtherPrograms) {
    const RowForm form =
        formOfRow(R"({"input_ids": [4, 5], "attention_mask": [1, 1], "position_ids": [0, 1], "labels": [-100, 5]})");
    EXPECT_EQ(form.kind, RowLayout::Tokens);
    EXPECT_EQ(form.tokens.key, "input_ids");
    EXPECT_EQ(form.tokens.value->dump(), "[4,5]");
    EXPECT_EQ(form.labels.value->dump(), "[-100,5]");
    EXPECT_EQ(form.marks.value, nullptr);
    EXPECT_EQ(formOfRow(R"({"input_ids": [4], "completion_mask": [0]})").marks.key, "completion_mask");
}

TEST(RowLayouts, WhatIsNotUsedIsSaidOnceForAFile) {
    RowNotes notes;
    for (const char* json :
         {R"({"id": 7, "source": "web", "tools": null, "messages": [{"role": "user", "content": "a"},
             {"role": "assistant", "content": "b", "refusal": null, "audio": null, "id": "m1"}]})",
          R"({"prompt": "x", "id": 8, "messages": [{"role": "user", "content": "a"}, {"role": "assistant"}]})",
          R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null}]})"}) {
        readRowLayout(RowJson::parse(json), "f: line 2", notes);
    }
    const std::vector<std::string> warnings = test::warningsOf([&] { notes.say("f"); });
    ASSERT_EQ(warnings.size(), 2U);
    EXPECT_EQ(warnings[0], R"(f: not used: "id", "id" of messages, "prompt", "source"; rows are trained without them)");
    EXPECT_EQ(warnings[1], "f: line 2: an answer of the assistant has no content and no calls; the 2 such answers of "
                           "the file are not trained");
}

TEST(RowLayouts, AnAnswerWithoutContentIsNotTrained) {
    EXPECT_EQ(chatOf(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null}]})"),
              "user:a -assistant:");
    EXPECT_EQ(chatOf(R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": null}]})"),
              "user:a -assistant:");
    EXPECT_EQ(chatOf(R"({"instruction": "a", "output": null})"), "user:a -assistant:");
    EXPECT_EQ(chatOf(R"({"messages": [{"role": "assistant", "content": [], "tool_calls": [], "thinking": ""}]})")
                  .find("-assistant:"),
              0U);
    EXPECT_EQ(chatOf(R"({"messages": [{"role": "assistant", "content": ""}]})"), "assistant:");
    const RowForm thought = formOfRow(R"({"messages": [{"role": "assistant", "content": null, "reasoning": "so"}]})");
    EXPECT_FALSE(thought.trained[0]);
    EXPECT_EQ(thought.messages[0]["reasoning_content"], "so");
}

TEST(RowLayouts, KeysThatBearOnTrainingAreRefusedByName) {
    const std::string chat = R"("messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])";
    for (const char* key : {"train_on_input", "train_on_inputs", "weight", "loss_mask", "labels", "mask_history"}) {
        EXPECT_EQ(layoutError("{" + chat + ", \"" + key + "\": 0}").find("f: line 1: " + std::string(key) + ": would"),
                  0U)
            << key;
    }
    for (const char* member : {R"("images": ["a.png"])", R"("chat_template_kwargs": {"enable_thinking": false})",
                               R"("functions": [{"name": "f"}])"}) {
        EXPECT_NE(layoutError("{" + chat + ", " + member + "}").find("would change what the model is shown"),
                  std::string::npos)
            << member;
    }
    EXPECT_EQ(layoutError("{" + chat + R"(, "images": [], "labels": null})"), "no error");
    for (const char* member : {R"("refusal": "no")", R"("function_call": {"name": "f"})", R"("loss": false)"}) {
        EXPECT_NE(layoutError(R"({"messages": [{"role": "assistant", "content": "b", )" + std::string(member) + "}]}")
                      .find("f: line 1: messages[0]."),
                  std::string::npos)
            << member;
    }
}

TEST(RowLayouts, BadRowsAreNamed) {
    const std::vector<std::pair<std::string, std::string>> table = {
        {"[]", "must be an object"},
        {"{}", "must have one of \"messages\""},
        {R"({"text": null})", "must have one of"},
        {R"({"prompt": "a"})", "must have one of"},
        {R"({"prompt": "a", "chosen": "b", "rejected": "c"})", "chosen: rows of preferences"},
        {R"({"text": "a", "messages": []})", "must have one of \"messages\" and \"text\""},
        {R"({"tokens": [1], "input_ids": [1]})", "must have one of \"tokens\" and \"input_ids\""},
        {R"({"text": 3})", "text: must be text, not number"},
        {R"({"prompt": "a", "completion": null})", "completion: must be text"},
        {R"({"prompt": "a", "completion": [{"role": "assistant", "content": "b"}]})", "completion: must be text"},
        {R"({"prompt": "a", "completion": "b", "label": false})", "label: says whether"},
        {R"({"prompt": "a", "completion": "b", "system": "s"})", "system: a completion of text has none"},
        {R"({"prompt": [{"role": "assistant", "content": "b", "train": true}], "completion": []})",
         "prompt: has a message with \"train\""},
        {R"({"prompt": [{"role": "user", "content": "b"}], "completion": []})", "completion: there is no message"},
        {R"({"messages": []})", "messages: there is no message"},
        {R"({"messages": "x"})", "messages: must be a list, not string"},
        {R"({"messages": [3]})", "messages[0]: must be an object"},
        {R"({"messages": [{"role": "user"}]})", "messages[0]: has no content"},
        {R"({"messages": [{"role": "assistant", "content": "a", "weight": 0.5}]})",
         "messages[0].weight: must be 0 or 1"},
        {R"({"messages": [{"role": "assistant", "content": "a", "weight": "1"}]})",
         "messages[0].weight: must be 0 or 1"},
        {R"({"messages": [{"role": "assistant", "content": "a", "train": 1}]})", "messages[0].train: must be true"},
        {R"({"messages": [{"role": "assistant", "content": "a", "train": true, "weight": 0}]})",
         "messages[0].train: says otherwise"},
        {R"({"messages": [{"role": "user", "content": "a", "train": true}]})", "messages[0]: only answers of the"},
        {R"({"system": "s", "messages": [{"role": "system", "content": "a"}]})", "messages[0]: is a system message"},
        {R"({"conversations": [{"from": "cat", "value": "a"}]})", "conversations[0].from: \"cat\" is no speaker"},
        {R"({"conversations": [{"from": 3, "value": "a"}]})", "conversations[0].from: must be text"},
        {R"({"conversations": [{"from": "gpt", "role": "user", "value": "a"}]})", "conversations[0]: has \"from\" and"},
        {R"({"conversations": [{"from": "function_call", "value": "f of 1"}]})", "conversations[0].value: line 1"},
        {R"({"conversations": [{"from": "function_call", "value": "{}"}]})", "conversations[0].value: must be a call"},
        {R"({"tools": {"name": "f"}, "messages": [{"role": "user", "content": "a"}]})", "tools: must be a list"},
        {R"({"tools": "f", "messages": [{"role": "user", "content": "a"}]})", "tools: line 1, column"},
        {R"({"instruction": "", "input": "", "output": "a"})", "instruction: is empty"},
        {R"({"instruction": "a", "output": ["b"]})", "output: must be text"},
        {R"({"instruction": "a", "output": "b", "history": [["c"]]})", "history[0]: must be a question"},
        {R"({"instruction": "a", "output": "b", "history": [["c", 3]]})", "history[0]: must be text"},
        {R"({"input_ids": [1, 2], "attention_mask": [1, 0]})", "attention_mask: must be 1 for each token"},
        {R"({"input_ids": [1, 2], "position_ids": [0, 0]})", "position_ids: must count the tokens from 0"},
        {R"({"tokens": [1], "trained": [1], "loss_mask": [1]})", "loss_mask: stands together with \"trained\""},
    };
    for (const auto& [json, message] : table) {
        EXPECT_EQ(layoutError(json).find("f: line 1: " + message), 0U) << json << " gives: " << layoutError(json);
    }
}

} // namespace
} // namespace vitrine::engine
