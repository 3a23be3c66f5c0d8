// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/gguf_bytes.h"

namespace vitrine::engine {
namespace {

using test::failure;
using test::GgufBytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Dims = std::vector<std::int64_t>;

GgufHeader parsedGguf(const std::string& bytes) {
    auto header = GgufHeader::parse(bytes, bytes.size(), "F");
    EXPECT_TRUE(header.has_value());
    return std::move(*header);
}

std::string ggufRefusal(const std::string& bytes) {
    return failure([&] { GgufHeader::parse(bytes, bytes.size(), "F"); });
}

TEST(GgufFile, ReadsWhatTheGgufPackageWrote) {
    const GgufFile file(vitrine::test::fixture("gguf/blocks.gguf"));
    const GgufHeader& header = file.header();
    EXPECT_EQ(header.text("general.architecture"), "none");
    EXPECT_EQ(header.integer("test.u8"), 200);
    EXPECT_EQ(header.integer("test.i16"), -300);
    EXPECT_EQ(header.integer("test.u64"), std::int64_t{1} << 40);
    EXPECT_EQ(header.number("test.f32"), 1e-5) << "and not the double that is nearest to the float";
    EXPECT_EQ(header.number("test.f64"), 0.1);
    EXPECT_EQ(header.number("test.i16"), -300);
    EXPECT_EQ(header.boolean("test.bool"), true);
    EXPECT_EQ(header.text("test.text"), "Grüße");
    EXPECT_THAT(header.texts("test.texts"), ElementsAre("a", "", "bc"));
    EXPECT_THAT(header.integers("test.integers"), ElementsAre(3, -4));
    EXPECT_EQ(header.integer("test.none"), std::nullopt);
    const GgufTensor* tensor = header.tensor("Q6_K");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(Dims(tensor->shape().begin(), tensor->shape().end()), (Dims{3, 512}));
    EXPECT_EQ(tensor->bytes, 3U * 2 * 210);
    EXPECT_EQ(header.tensors().size(), 18U);
}

TEST(GgufFile, AValueOfAnotherTypeIsNamed) {
    const GgufHeader header = parsedGguf(GgufBytes().integer("n", 5).words("t", "x").bytes());
    EXPECT_EQ(failure([&] { header.text("n"); }), "bad_input: F: n: must be a text");
    EXPECT_EQ(failure([&] { header.integer("t"); }), "bad_input: F: t: must be an integer");
    EXPECT_EQ(failure([&] { header.number("t"); }), "bad_input: F: t: must be a number");
    EXPECT_EQ(failure([&] { header.boolean("n"); }), "bad_input: F: n: must be true or false");
    EXPECT_EQ(failure([&] { header.texts("t"); }), "bad_input: F: t: must be a list of texts");
    EXPECT_EQ(failure([&] { header.floats("n"); }), "bad_input: F: n: must be a list of float32");
    EXPECT_EQ(failure([&] { header.integers("t"); }), "bad_input: F: t: must be a list of integers of 32 bits");
}

TEST(GgufFile, WhatIsWrongIsNamed) {
    const std::string f32(64, '\0');
    EXPECT_EQ(ggufRefusal("GGML...."), "bad_input: F: magic: is not \"GGUF\"; this is no GGUF file");
    EXPECT_THAT(ggufRefusal(GgufBytes(1).bytes()), HasSubstr("unsupported: F: version: 1 is not supported"));
    EXPECT_THAT(ggufRefusal(GgufBytes(0x03000000).bytes()), HasSubstr("big-endian"));
    EXPECT_THAT(ggufRefusal(GgufBytes().integer("a", 1).integer("a", 2).bytes()),
                HasSubstr("F: \"a\": is there twice"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensor("w", 0, {16}, f32).tensor("w", 0, {16}, f32).bytes()),
                HasSubstr("F: \"w\": is there twice"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensor("w", 4, {16}, f32).bytes()), HasSubstr("F: \"w\": has the type 4"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensor("w", 2, {16}, f32).bytes()), HasSubstr("not whole blocks of 32 (Q4_0)"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensor("w", 0, {17, 1}, f32).bytes()), HasSubstr("the file ends at"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensor("w", 0, {0}, f32).bytes()), HasSubstr("an axis of 0 elements"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensor("w", 0, {INT64_MAX, 3}, f32).bytes()), HasSubstr("an axis of"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensor("w", 0, {1, 1, 1, 1, 1}, f32).bytes()), HasSubstr("has 5 axes"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensorAt("w", 0, {16}, 8, f32).bytes()), HasSubstr("no multiple of 32"));
    EXPECT_THAT(ggufRefusal(GgufBytes().tensor("a", 0, {16}, f32).tensorAt("b", 0, {16}, 32, f32).bytes()),
                HasSubstr("F: \"b\": begins at 32, inside the tensor before it"));
    EXPECT_THAT(ggufRefusal(GgufBytes().integer("general.alignment", 48).bytes()), HasSubstr("48 is no power of two"));
    EXPECT_THAT(ggufRefusal(GgufBytes().value("a", static_cast<GgufValueType>(13), "x").bytes()),
                HasSubstr("F: \"a\": has the type 13"));
    // Whatever a file calls its keys, a message is one line.
    EXPECT_THAT(ggufRefusal(GgufBytes().value("a\nb", GgufValueType::Text, "x").bytes()),
                ::testing::Not(HasSubstr("\n")));
    const std::string nested = GgufBytes::raw(std::uint32_t{9}) + GgufBytes::raw(std::uint64_t{1});
    EXPECT_THAT(ggufRefusal(GgufBytes().value("a", GgufValueType::Array, nested).bytes()),
                HasSubstr("arrays of arrays"));
}

TEST(GgufFile, CountsThatTheFileCannotHoldAreRefusedBeforeAnythingIsAllocated) {
    const std::string many = GgufBytes::raw(std::uint64_t{1} << 60);
    const std::string none = GgufBytes::raw(std::uint64_t{0});
    const std::string start = "GGUF" + GgufBytes::raw(std::uint32_t{3});
    EXPECT_THAT(ggufRefusal(start + many + none), StartsWith("bad_input: F: tensor_count: "));
    EXPECT_THAT(ggufRefusal(start + none + many), StartsWith("bad_input: F: metadata_kv_count: "));
    EXPECT_THAT(ggufRefusal(GgufBytes().value("a", GgufValueType::Text, many).bytes()),
                StartsWith("bad_input: F: \"a\": "));
    const std::string list = GgufBytes::raw(std::uint32_t{0}) + many;
    EXPECT_THAT(ggufRefusal(GgufBytes().value("a", GgufValueType::Array, list).bytes()),
                StartsWith("bad_input: F: \"a\": "));
}

TEST(GgufFile, EveryTruncatedFileIsRefused) {
    const std::string whole =
        GgufBytes().integer("n", 5).words("t", "text").tensor("w", 0, {16}, std::string(64, '\1')).bytes();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_THAT(ggufRefusal(whole.substr(0, size)), StartsWith("bad_input: F: ")) << size;
    }
    EXPECT_EQ(parsedGguf(whole).tensors().size(), 1U);
}

TEST(GgufFile, AHeaderThatGoesOnIsAskedForMore) {
    const std::string whole = GgufBytes().integer("n", 5).words("t", "text").bytes();
    for (std::size_t size = 0; size + 32 < whole.size(); ++size) {
        EXPECT_FALSE(GgufHeader::parse(whole.substr(0, size), whole.size(), "F").has_value()) << size;
    }
    // A header that is larger than what is read first.
    const test::TempFolder folder;
    const std::string path =
        folder.write("x.gguf", GgufBytes().words("t", std::string(3 << 20, 'x')).integer("n", 5).bytes());
    EXPECT_EQ(GgufFile(path).header().integer("n"), 5);
}

TEST(GgufFile, IsKnownByItsFirstBytes) {
    const test::TempFolder folder;
    EXPECT_TRUE(GgufFile::is(folder.write("a", "GGUF")));
    EXPECT_FALSE(GgufFile::is(folder.write("b", "GGU")));
    EXPECT_FALSE(GgufFile::is(folder.write("c", "{\"a\"}")));
}

} // namespace
} // namespace vitrine::engine
