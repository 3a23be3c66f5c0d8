// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/program_choice.h"

#include <gmock/gmock.h>

namespace vitrine::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T> std::vector<T> valuesOf(const CapturedTensor& tensor) {
    const T* const data = tensor.view().as<const T>();
    return {data, data + tensor.shape.count()};
}

std::string failureOf(const std::string& text) {
    try {
        parseCaptureText(text);
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return {};
}

TEST(ProgramChoice, CapturesInOneLine) {
    const auto [name, documents] = parseCaptureText("doc_id=documents:2,1,3");
    EXPECT_EQ(name, "doc_id");
    EXPECT_EQ(documents.dtype, kernels::DType::I32);
    EXPECT_THAT(valuesOf<std::int32_t>(documents), ElementsAre(0, 0, 1, 2, 2, 2));
    EXPECT_EQ(documentsText("doc_id", {2, 1, 3}), "doc_id=documents:2,1,3");
    const CapturedTensor integers = parseCaptureText("prefix=5, -9").second;
    EXPECT_EQ(integers.dtype, kernels::DType::I32);
    EXPECT_THAT(valuesOf<std::int32_t>(integers), ElementsAre(5, -9));
    const CapturedTensor reals = parseCaptureText("slopes=1,0.25").second;
    EXPECT_EQ(reals.dtype, kernels::DType::F32);
    EXPECT_THAT(valuesOf<float>(reals), ElementsAre(1.0F, 0.25F));
}

TEST(ProgramChoice, MistakesInCapturesAreNamed) {
    EXPECT_THAT(failureOf("=1"), HasSubstr("NAME=1,2,3"));
    EXPECT_THAT(failureOf("x=1,,2"), HasSubstr("x: \"\" is no number"));
    EXPECT_THAT(failureOf("x=nan"), HasSubstr("no number"));
    EXPECT_THAT(failureOf("d=documents:5,0"), HasSubstr("positive"));
    EXPECT_THAT(failureOf("d=documents:99999999999"), HasSubstr("no length"));
    EXPECT_THAT(failureOf("d=documents:16777216,1"), HasSubstr("in all"));
    EXPECT_THROW(parseDefine("--define", "N=1.5"), base::BadInput);
    EXPECT_EQ(parseParameter("parameter", "W=1.5").second, 1.5);
}

TEST(ProgramChoice, NumbersThatSlidersMay) {
    ProgramChoice choice;
    choice.program = "WINDOW = 64\nHALF = WINDOW // 2\nUNUSED = 5\n"
                     "def make(reach: float = 1.5):\n"
                     "    def m(b, h, q, k):\n        return ((q - k) * reach < WINDOW + S) & (k > HALF)\n"
                     "    return m\n";
    choice.queries = choice.keys = 128;
    const PyModule module = parseModule(choice);
    const ChosenProgram first = module.mask("make()", programOptions(choice, {}));
    ASSERT_EQ(first.numbers.size(), 3U);
    EXPECT_EQ(first.numbers[0].name, "WINDOW");
    EXPECT_EQ(first.numbers[1].name, "HALF");
    EXPECT_EQ(first.numbers[2].name, "reach");
    EXPECT_EQ(first.numbers[2].value, 1.5);
    EXPECT_FALSE(first.numbers[2].whole);
    EXPECT_TRUE(first.program.captures.empty());
    // Moved, they are read when the program runs; what follows from another is none of its own.
    choice.parameters = {{"WINDOW", 32}, {"HALF", 32}, {"reach", 1}};
    const ChosenProgram moved = module.mask("make()", programOptions(choice, {}));
    ASSERT_EQ(moved.numbers.size(), 2U);
    EXPECT_EQ(moved.numbers[0].value, 64);
    EXPECT_EQ(moved.program.captures.size(), 2U);
}

} // namespace
} // namespace vitrine::engine
