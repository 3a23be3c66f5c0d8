// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What must hold for any text, tried on random ones.

#include <array>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unicode_text.h"
#include "tests/engine/tokenizer/tokenizer_fixtures.h"

namespace vitrine::engine {
namespace {

class RandomTexts {
public:
    explicit RandomTexts(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }

    std::string next() {
        static constexpr std::array<const char*, 22> kParts = {"Hello",
                                                               " world",
                                                               "  ",
                                                               "\n\n",
                                                               "\t",
                                                               "'ll",
                                                               "123",
                                                               "e\xCC\x81",
                                                               "\xE6\x97\xA5\xE6\x9C\xAC",
                                                               "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7",
                                                               "\xF0\x9F\x98\x80",
                                                               "<|endoftext|>",
                                                               "<s>",
                                                               "<|im_",
                                                               "\xEF\xBF\xBD",
                                                               "\x7F",
                                                               "/",
                                                               "--",
                                                               "A",
                                                               "ing",
                                                               "\xE2\x96\x81",
                                                               "\xC4\xA0"};
        std::string text;
        for (std::size_t parts = below(12); parts > 0; --parts) {
            if (below(4) == 0) {
                char32_t code = static_cast<char32_t>(below(0x110000));
                code = code >= 0xD800 && code < 0xE000 ? U'x' : code;
                appendUtf8(text, code);
            } else {
                text += kParts[below(kParts.size())];
            }
        }
        return text;
    }

private:
    std::mt19937 random_;
};

TEST(TokenizerProperties, byteLevelTextComesBack) {
    RandomTexts texts(1);
    for (const char* name : {"o200k-style", "cl100k-style", "llama3-small"}) {
        const auto tokenizer = test::tokenizerFixture(name);
        for (int i = 0; i < 400; ++i) {
            const std::string text = texts.next();
            EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false)), text);
        }
    }
}

TEST(TokenizerProperties, promptsWithoutMarksAreTexts) {
    RandomTexts texts(2);
    for (const char* name : {"o200k-style", "llama2-style", "metaspace-style", "gemma-small", "own-suffix"}) {
        const auto tokenizer = test::tokenizerFixture(name);
        for (int i = 0; i < 200; ++i) {
            const std::string text = texts.next();
            EXPECT_EQ(tokenizer->encodePrompt(text, {}), tokenizer->encode(text, false)) << text;
            const std::vector<std::uint8_t> none(text.size(), 0);
            EXPECT_EQ(tokenizer->encodePrompt(text, none), tokenizer->encode(text, false)) << text;
        }
    }
}

TEST(TokenizerProperties, noSpecialTokenIsReadFromWhatAUserWrote) {
    RandomTexts texts(3);
    for (const char* name : {"o200k-style", "qwen-style", "llama2-style", "metaspace-style", "own-llama2"}) {
        const auto tokenizer = test::tokenizerFixture(name);
        std::vector<std::int32_t> specials;
        for (std::int32_t id = 0; id < tokenizer->vocabSize(); ++id) {
            if (tokenizer->isSpecial(id)) {
                specials.push_back(id);
            }
        }
        ASSERT_FALSE(specials.empty());
        const auto special = [&] { return std::string(tokenizer->pieceOf(specials[texts.below(specials.size())])); };
        for (int i = 0; i < 200; ++i) {
            std::string prompt;
            std::vector<std::uint8_t> written;
            const auto add = [&](const std::string& text, std::uint8_t mark) {
                prompt += text;
                written.resize(prompt.size(), mark);
            };
            for (std::size_t k = texts.below(4) + 1; k > 0; --k) {
                add(texts.next() + special() + texts.next(), 1);
                add(special(), 0);
            }
            std::string plain; // the same with other letters where the user wrote a token
            for (std::size_t at = 0; at < prompt.size(); ++at) {
                plain += written[at] != 0 && prompt[at] == '<' ? '(' : prompt[at];
            }
            const auto count = [&](const std::vector<std::int32_t>& ids) {
                return std::count_if(ids.begin(), ids.end(), [&](std::int32_t id) { return tokenizer->isSpecial(id); });
            };
            EXPECT_EQ(count(tokenizer->encodePrompt(prompt, written)), count(tokenizer->encode(plain, false)))
                << prompt;
        }
    }
}

TEST(TokenizerProperties, manyThreadsShareOneTokenizer) {
    for (const char* name : {"own-gpt2", "own-llama2"}) {
        const auto tokenizer = test::tokenizerFixture(name);
        RandomTexts texts(4);
        std::vector<std::string> inputs;
        std::vector<std::vector<std::int32_t>> expected;
        for (int i = 0; i < 100; ++i) {
            inputs.push_back(texts.next());
            expected.push_back(tokenizer->encode(inputs.back(), true));
        }
        std::array<int, 4> wrong{};
        std::vector<std::thread> threads;
        for (int& count : wrong) {
            threads.emplace_back([&] {
                for (std::size_t i = 0; i < inputs.size(); ++i) {
                    const auto ids = tokenizer->encode(inputs[i], true);
                    count += ids != expected[i] || tokenizer->decode(ids) != tokenizer->decode(expected[i]) ? 1 : 0;
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(wrong, (std::array<int, 4>{}));
    }
}

TEST(TokenizerProperties, longTextsWithoutSpacesAreNotQuadratic) {
    // A quadratic merge would need hours for these.
    for (const char* name : {"o200k-style", "llama2-style"}) {
        const auto tokenizer = test::tokenizerFixture(name);
        for (const std::string part : {"abcdefghij", "a", " ", "\xE2\x96\x81"}) {
            std::string text;
            while (text.size() < 300'000) {
                text += part;
            }
            const auto ids = tokenizer->encode(text, false);
            EXPECT_GT(ids.size(), 1000U);
            if (part[0] == 'a') {
                EXPECT_EQ(tokenizer->decode(ids), text);
            }
        }
    }
}

} // namespace
} // namespace vitrine::engine
