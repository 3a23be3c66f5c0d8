// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/training_rows.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/chat/chat_fixtures.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/log_capture.h"
#include "tests/engine/tokenizer/tokenizer_fixtures.h"

namespace vitrine::engine {
namespace {

using Marks = std::vector<std::uint8_t>;

TrainingRowOptions rowOptions() {
    TrainingRowOptions options;
    options.tokenizer = test::tokenizerFixture("llama3-small");
    options.format = std::make_shared<ChatFormat>(test::builtInFormat("llama3", "llama3-small", "llama"));
    options.chat.date = "2025-06-28";
    options.vocab = options.tokenizer->vocabSize();
    options.eosTokens = {*options.tokenizer->idOf("<|end_of_text|>"), *options.tokenizer->idOf("<|eot_id|>")};
    return options;
}

/// A folder of this process: tests that run at the same time have others.
const test::TempFolder& rowsFolder() {
    static const test::TempFolder kFolder;
    return kFolder;
}

std::string rowsFile(const std::string& text) {
    return rowsFolder().write("training_rows.jsonl", text);
}

std::vector<TrainingRow> rowsOf(const std::string& text, const TrainingRowOptions& options) {
    return readTrainingRows(rowsFile(text), options, {}, nullptr);
}

/// The message without the folder of the file.
std::string rowsError(const std::string& text, const TrainingRowOptions& options) {
    try {
        rowsOf(text, options);
    } catch (const base::Error& error) {
        return error.message().substr(error.message().find("training_rows.jsonl"));
    }
    return "no error";
}

TEST(TrainingRows, TextsEndWithTheTokenThatEndsThem) {
    const TrainingRowOptions options = rowOptions();
    const auto rows = rowsOf("\n{\"text\": \"Hello there\"}\n", options);
    ASSERT_EQ(rows.size(), 1U);
    std::vector<std::int32_t> wanted = options.tokenizer->encode("Hello there", true);
    wanted.push_back(options.eosTokens.front());
    EXPECT_EQ(rows[0].tokens, wanted);
    EXPECT_EQ(rows[0].trained, Marks(wanted.size(), 1));
    EXPECT_EQ(rows[0].line, 2);
    const auto ended = rowsOf("{\"text\": \"Hello there<|eot_id|>\"}", options);
    EXPECT_EQ(ended[0].tokens.back(), options.eosTokens.back());
}

TEST(TrainingRows, ConversationsTrainAnswers) {
    const TrainingRowOptions options = rowOptions();
    const auto rows = rowsOf(
        R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]})", options);
    ASSERT_EQ(rows.size(), 1U);
    std::vector<std::int32_t> trained;
    for (std::size_t i = 0; i < rows[0].tokens.size(); ++i) {
        if (rows[0].trained[i] != 0) {
            trained.push_back(rows[0].tokens[i]);
        }
    }
    EXPECT_EQ(options.tokenizer->decode(trained), "Yes<|eot_id|>");
}

/// The trained parts of the first row, each in brackets.
std::string trainedText(const std::string& text) {
    const TrainingRowOptions options = rowOptions();
    const TrainingRow row = rowsOf(text, options).at(0);
    std::string out;
    for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        const bool before = i > 0 && row.trained[i - 1] != 0;
        const bool now = row.trained[i] != 0;
        out += now == before ? "" : now ? "[" : "]";
        out += now ? options.tokenizer->decode({&row.tokens[i], 1}) : "";
    }
    return out + (row.trained.back() != 0 ? "]" : "");
}

TEST(TrainingRows, CompletionsAreTrainedWithTheirEnd) {
    const TrainingRowOptions options = rowOptions();
    const TrainingRow row = rowsOf(R"({"prompt": "One plus one is", "completion": " two"})", options).at(0);
    std::vector<std::int32_t> whole = options.tokenizer->encode("One plus one is two", true);
    whole.push_back(options.eosTokens.front());
    EXPECT_EQ(row.tokens, whole);
    EXPECT_FALSE(row.conversation);
    EXPECT_EQ(trainedText(R"({"prompt": "One plus one is", "completion": " two"})"), "[ two<|end_of_text|>]");
    EXPECT_EQ(trainedText(R"({"prompt": "One", "completion": ""})"), "[<|end_of_text|>]");
}

TEST(TrainingRows, OtherLayoutsOfConversationsGetTheChatFormat) {
    const TrainingRowOptions options = rowOptions();
    const auto wanted = rowsOf(
        R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]})", options);
    for (const char* same :
         {R"({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes"}]})",
          R"({"instruction": "Hi", "input": "", "output": "Yes"})",
          R"({"prompt": [{"role": "user", "content": "Hi"}],
                                 "completion": [{"role": "assistant", "content": "Yes"}]})"}) {
        std::string line = same;
        std::erase(line, '\n');
        const auto rows = rowsOf(line, options);
        EXPECT_EQ(rows[0].tokens, wanted[0].tokens) << same;
        EXPECT_EQ(rows[0].trained, wanted[0].trained) << same;
        EXPECT_TRUE(rows[0].conversation);
    }
}

TEST(TrainingRows, MessagesSayWhetherTheyAreTrained) {
    const auto four = [](const std::string& first, const std::string& second) {
        return R"({"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "One")" + first +
               R"(}, {"role": "user", "content": "B"}, {"role": "assistant", "content": "Two")" + second + "}]}";
    };
    EXPECT_EQ(trainedText(four("", "")), "[One<|eot_id|>][Two<|eot_id|>]");
    EXPECT_EQ(trainedText(four(R"(, "weight": 0)", "")), "[Two<|eot_id|>]");
    EXPECT_EQ(trainedText(four(R"(, "train": true)", R"(, "train": false)")), "[One<|eot_id|>]");
    EXPECT_EQ(rowsError(four(R"(, "weight": 0)", R"(, "weight": 0)"), rowOptions()).find("training_rows.jsonl: no row"),
              0U);
    EXPECT_EQ(trainedText(R"({"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": null},)"
                          R"( {"role": "user", "content": "B"}, {"role": "assistant", "content": "Two"}]})"),
              "[Two<|eot_id|>]");
}

TEST(TrainingRows, AnswersOfOneTurnAreTrainedByTheirOwnMessages) {
    TrainingRowOptions options = rowOptions();
    options.tokenizer = test::tokenizerFixture("o200k-style");
    options.format = std::make_shared<ChatFormat>(test::builtInFormat("harmony", "o200k-style", "gpt_oss"));
    options.vocab = options.tokenizer->vocabSize();
    const auto row = [](const char* first, const char* second) {
        return std::string(
                   R"({"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "One",)") +
               R"( "train": )" + first + R"(}, {"role": "assistant", "content": "Two", "train": )" + second + "}]}";
    };
    const auto trained = [&](const char* first, const char* second) {
        const TrainingRow made = rowsOf(row(first, second), options).at(0);
        std::vector<std::int32_t> ids;
        for (std::size_t i = 0; i < made.tokens.size(); ++i) {
            if (made.trained[i] != 0) {
                ids.push_back(made.tokens[i]);
            }
        }
        return options.tokenizer->decode(ids);
    };
    const std::string one = "<|channel|>final<|message|>One<|end|>";
    const std::string two = "<|start|>assistant<|channel|>final<|message|>Two<|return|>";
    EXPECT_EQ(trained("true", "true"), one + two);
    EXPECT_EQ(trained("true", "false"), one);
    EXPECT_EQ(trained("false", "true"), two);
}

TEST(TrainingRows, AByteOrderMarkIsSkipped) {
    TrainingRowOptions options;
    options.vocab = 10;
    const auto rows = rowsOf("\xEF\xBB\xBF{\"tokens\": [1, 2]}\n{\"tokens\": [3, 4]}", options);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].offset, 3U);
}

TEST(TrainingRows, RowsOfAnArrayHaveTheirNumberAndAreReadAgain) {
    TrainingRowOptions options;
    options.vocab = 10;
    const std::string text =
        "[\n {\n  \"tokens\": [1, 2]\n }, {\"tokens\": [3, 4]}, {\"tokens\": 3},\n {\"tokens\": [5, 6]}\n]\n";
    std::string reasons;
    options.unreadable = [&](std::int64_t line, const std::string& why) {
        reasons += std::to_string(line) + ": " + why;
    };
    const auto rows = rowsOf(text, options);
    EXPECT_EQ(reasons.find("3: tokens: "), 0U) << reasons;
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[0].line, 1);
    EXPECT_EQ(rows[1].line, 2);
    EXPECT_EQ(rows[2].line, 4);
    for (const TrainingRow& row : rows) {
        EXPECT_EQ(readTrainingRow(rowsFile(text), row.line, row.offset, options).tokens, row.tokens);
    }
}

TEST(TrainingRows, AReasonNamesItsLineOnce) {
    TrainingRowOptions options;
    options.vocab = 10;
    std::string reasons;
    options.unreadable = [&](std::int64_t, const std::string& why) { reasons += why.substr(0, 8) + ";"; };
    rowsOf("{\"tokens\": [1, 2]}\n{\"tokens\" [1]}\n{}", options);
    EXPECT_EQ(reasons, "column 1;must hav;");
}

TEST(TrainingRows, KeysThatChangeNothingAreSaidOnce) {
    TrainingRowOptions options;
    options.vocab = 10;
    const auto warnings = test::warningsOf([&] {
        EXPECT_EQ(
            rowsOf("{\"tokens\": [1, 2], \"id\": 1}\n{\"tokens\": [3, 4], \"id\": 2, \"url\": \"u\"}", options).size(),
            2U);
    });
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("not used: \"id\", \"url\"; rows are trained without them"), std::string::npos);
}

TEST(TrainingRows, TokensHaveMarksOrLabels) {
    TrainingRowOptions options;
    options.vocab = 10;
    const auto rows = rowsOf("{\"tokens\": [1, 2, 9]}\n"
                             "{\"tokens\": [1, 2, 3], \"trained\": [0, 1, true]}\r\n"
                             "{\"tokens\": [4, 5, 6], \"labels\": [-100, 5, -100]}",
                             options);
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[0].tokens, (std::vector<std::int32_t>{1, 2, 9}));
    EXPECT_EQ(rows[0].trained, (Marks{1, 1, 1}));
    EXPECT_EQ(rows[1].trained, (Marks{0, 1, 1}));
    EXPECT_EQ(rows[2].trained, (Marks{0, 1, 0}));
    EXPECT_EQ(rows[2].line, 3);
}

TEST(TrainingRows, ReadsTensors) {
    const std::string path = rowsFolder().file("training_rows.safetensors");
    TensorSpec spec;
    spec.name = "input_ids";
    spec.dtype = kernels::DType::I32;
    spec.shape = {2, 3};
    const std::vector<std::int32_t> ids = {1, 2, 3, 4, 5, 6};
    const auto writer = SafetensorsWriter::create(path, {spec});
    writer->write(ids.data(), ids.size() * sizeof(std::int32_t));
    writer->finish();
    TrainingRowOptions options;
    options.vocab = 7;
    const auto rows = readTrainingRows(path, options, {}, nullptr);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[1].tokens, (std::vector<std::int32_t>{4, 5, 6}));
    EXPECT_EQ(rows[1].trained, (Marks{1, 1, 1}));
    EXPECT_EQ(rows[1].line, 2);
    options.vocab = 6;
    EXPECT_THROW(readTrainingRows(path, options, {}, nullptr), base::BadInput);
}

TEST(TrainingRows, LimitsStopReading) {
    TrainingRowOptions options;
    options.vocab = 10;
    options.mostRows = 2;
    EXPECT_EQ(rowsOf("{\"tokens\": [1, 2]}\n{\"tokens\": [1, 2]}\nnot read", options).size(), 2U);
    options.mostRows = 0;
    options.mostTokens = 3;
    EXPECT_EQ(rowsError("{\"tokens\": [1, 2]}\n{\"tokens\": [1, 2]}", options),
              "training_rows.jsonl: line 2: here the file has more than 3 tokens; split it");
}

TEST(TrainingRows, StopsAndReports) {
    struct Sink final : base::ProgressSink {
        void progress(std::string_view what, std::uint64_t done, std::uint64_t total) override {
            last = {std::string(what), std::pair(done, total)};
        }
        std::pair<std::string, std::pair<std::uint64_t, std::uint64_t>> last;
    };
    TrainingRowOptions options;
    options.vocab = 10;
    Sink sink;
    const std::string path = rowsFile("{\"tokens\": [1, 2]}\n{\"tokens\": [1, 2]}\n");
    readTrainingRows(path, options, {}, &sink);
    EXPECT_EQ(sink.last.first, "Reading training_rows.jsonl");
    EXPECT_EQ(sink.last.second, (std::pair<std::uint64_t, std::uint64_t>{38, 38}));
    base::StopSource stop;
    stop.request_stop();
    EXPECT_THROW(readTrainingRows(path, options, stop.get_token(), nullptr), base::Cancelled);
}

TEST(TrainingRows, BadRowsAreNamed) {
    const TrainingRowOptions options = rowOptions();
    const std::vector<std::pair<std::string, std::string>> table = {
        {"", ": holds no row"},
        {"\n \n", ": holds no row"},
        {"{\"tokens\": [1, 2]}\nx", ": line 2, column 1"},
        {"{\"text\": \"\xff\"}", ": line 1, column"},
        {"[]", ": holds no row"},
        {"[3]", ": row 1: must be an object"},
        {"[{\"tokens\": [1, 2]},\n{\"tokens\": 3}]", ": row 2: tokens: "},
        {"[{\"tokens\": [1, 2]},\n{\"tokens\" 3}]", ": row 2: line 2, column 12: "},
        {"[{\"tokens\": [1, 2]}", ": row 1: line 1: the file ends before the array does"},
        {"3", ": line 1: must be an object"},
        {"{}", ": line 1: must have one of"},
        {R"({"text": null})", ": line 1: must have one of"},
        {R"({"text": "a", "tokens": [1]})", ": line 1: must have one of"},
        {R"({"text": "a", "weight": 2})", ": line 1: weight: would change what is trained"},
        {R"({"text": 3})", ": line 1: text: "},
        {R"({"text": ""})", ": line 1: text: is empty"},
        {R"({"tokens": []})", ": line 1: tokens: is empty"},
        {R"({"tokens": 3})", ": line 1: tokens: "},
        {R"({"tokens": ["a"]})", ": line 1: tokens[0]: "},
        {R"({"tokens": [1.5]})", ": line 1: tokens[0]: "},
        {R"({"tokens": [1, -1]})", ": line 1: tokens[1]: id -1 is outside"},
        {R"({"tokens": [1, 99999999]})", ": line 1: tokens[1]: id 99999999 is outside"},
        {R"({"tokens": [1, 2], "trained": [1]})", ": line 1: trained: has 1 entries, but there are 2 tokens"},
        {R"({"tokens": [1, 2], "trained": [1, 2]})", ": line 1: trained[1]: "},
        {R"({"tokens": [1, 2], "trained": [1, 1], "labels": [1, 2]})", ": line 1: labels: stands together"},
        {R"({"tokens": [1, 2], "labels": [1]})", ": line 1: labels: has 1 entries"},
        {R"({"tokens": [1, 2], "labels": [1, 3]})", ": line 1: labels[1]: must be -100"},
        {R"({"tokens": [1, 2], "labels": [1, "x"]})", ": line 1: labels[1]: "},
        {R"({"tokens": [1, 2], "trained": [1, 0]})", ": no row has a token that is trained"},
        {R"({"tokens": [1]})", ": no row has a token that is trained"},
        {R"({"messages": []})", ": line 1: messages: there is no message"},
        {R"({"messages": "x"})", ": line 1: messages: "},
        {R"({"messages": [{"content": "x"}]})", ": line 1: messages[0].role: is missing"},
        {R"({"messages": [{"role": "user", "content": 3}]})", ": line 1: messages[0].content: "},
        {R"({"messages": [{"role": "assistant", "content": "x", "weight": 0.5}]})",
         ": line 1: messages[0].weight: must be 0 or 1"},
        {R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": null}]})",
         ": no row has a token that is trained"},
        {R"({"tools": [{"type": "function"}], "messages": [{"role": "assistant", "content": "x"}]})",
         ": line 1: messages: the chat template refuses them: tools need a template"},
        {R"({"messages": [{"role": "user", "content": "x"}]})", ": no row has a token that is trained"},
    };
    for (const auto& [text, message] : table) {
        EXPECT_EQ(rowsError(text, options).rfind("training_rows.jsonl" + message, 0), 0U)
            << text << " gives: " << rowsError(text, options);
    }
    TrainingRowOptions bare;
    bare.vocab = 10;
    EXPECT_EQ(rowsError(R"({"text": "a"})", bare),
              "training_rows.jsonl: line 1: text: the model has no tokenizer.json; give the row as tokens");
    bare.tokenizer = options.tokenizer;
    EXPECT_NE(rowsError(R"({"text": "Hello"})", bare).find("outside the model's vocabulary of 10"), std::string::npos);
    EXPECT_THROW(readTrainingRows("/no/such/file", options, {}, nullptr), base::BadInput);
}

TEST(TrainingRows, ToolsAndOtherMembersReachTheTemplate) {
    TrainingRowOptions options = rowOptions();
    options.format = std::make_shared<ChatFormat>(test::formatOf(
        "{{ tools | tojson }}{% for m in messages %}<|start_header_id|>{{ m.role }} {{ m.channel }} {{ m.content }}"
        "<|eot_id|>{% endfor %}",
        "llama3-small"));
    const auto rows = rowsOf(R"({"tools": [{"b": 1, "a": 2}], "messages": [{"role": "user", "content": "x"},)"
                             R"( {"role": "assistant", "channel": "c", "content": "y"}]})",
                             options);
    EXPECT_EQ(options.tokenizer->decode(rows.at(0).tokens),
              R"([{"b": 1, "a": 2}]<|start_header_id|>user  x<|eot_id|><|start_header_id|>assistant c y<|eot_id|>)");
    options.format = std::make_shared<ChatFormat>(test::formatOf("{{ messages[0].content }}", "llama3-small"));
    EXPECT_NE(rowsError(R"({"tools": [{}], "messages": [{"role": "user", "content": "x"}]})", options)
                  .find("line 1: tools: the model's chat template takes none"),
              std::string::npos);
}

} // namespace
} // namespace vitrine::engine
