// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>
#include <cstring>
#include <gmock/gmock.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/safetensors_header.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using test::failure;
using test::safetensorsBytes;
using test::TempFolder;
using testing::HasSubstr;
using testing::StartsWith;

std::string openFailure(const std::string& header, std::size_t dataBytes) {
    const TempFolder folder;
    const std::string path = folder.write("x.safetensors", safetensorsBytes(header, dataBytes));
    return failure([&] { SafetensorsFile::open(path); });
}

TEST(Safetensors, ReadsUnalignedTensors) {
    const TempFolder folder;
    const std::string header = R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
                               R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                               R"("none":{"dtype":"BF16","shape":[4,0],"data_offsets":[3,3]},)"
                               R"("scalar":{"dtype":"I64","shape":[],"data_offsets":[11,19]},)"
                               R"("__metadata__":{"format":"pt"}}   )";
    const auto file = SafetensorsFile::open(folder.write("x.safetensors", safetensorsBytes(header, 19)));
    ASSERT_EQ(file->tensors().size(), 4U);
    EXPECT_EQ(file->tensors()[0].name, "a");
    EXPECT_EQ(file->metadata().at("format"), "pt");
    const TensorEntry* b = file->find("b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->dtype, DType::F32);
    EXPECT_EQ(b->bytes, 8U);
    std::array<unsigned char, 4> bytes{};
    file->read(*b, 2, bytes.data(), bytes.size());
    EXPECT_EQ(bytes, (std::array<unsigned char, 4>{5, 6, 7, 8}));
    EXPECT_THROW(file->read(*b, 5, bytes.data(), 4), base::Internal);
    EXPECT_EQ(file->find("none")->bytes, 0U);
    EXPECT_TRUE(file->find("scalar")->shape.empty());
    EXPECT_EQ(file->find("c"), nullptr);
}

TEST(Safetensors, SubByteTypesFillWholeBytes) {
    const TempFolder folder;
    const std::string header = R"({"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}})";
    EXPECT_EQ(SafetensorsFile::open(folder.write("x", safetensorsBytes(header, 3)))->tensors()[0].dtype, DType::F4);
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2), HasSubstr("whole bytes"));
}

TEST(Safetensors, RefusesBrokenHeaders) {
    EXPECT_THAT(openFailure(R"([1])", 0), HasSubstr("does not begin with '{'"));
    EXPECT_THAT(openFailure(R"({"a":1})", 0), HasSubstr("\"a\": must be an object"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                            R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                            4),
                HasSubstr("twice"));
    EXPECT_THAT(openFailure(R"({"__metadata__":{},"__metadata__":{}})", 0), HasSubstr("twice"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
                HasSubstr("twice"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"BF17","shape":[1],"data_offsets":[0,2]}})", 2), HasSubstr("BF17"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), HasSubstr("negative"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4), HasSubstr("shape"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4), HasSubstr("data_offsets"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4), HasSubstr("before"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8), HasSubstr("span 8 bytes"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), HasSubstr("holes"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]}})", 4),
                HasSubstr("strides"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                            R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                            6),
                HasSubstr("overlap"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5), HasSubstr("damaged"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3), HasSubstr("incomplete"));
    EXPECT_THAT(openFailure(R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
                HasSubstr("overflows"));
    EXPECT_THAT(openFailure(R"({"__metadata__":{"a":{"b":1}}})", 0), HasSubstr("must be a text"));
    EXPECT_THAT(openFailure("{\"a\xff\":{}}", 0), StartsWith("bad_input: "));
    EXPECT_THAT(openFailure("{" + std::string(2000, '['), 0), StartsWith("bad_input: "));
    EXPECT_THAT(openFailure(R"({"a":[[[[[[[1]]]]]]]})", 0), StartsWith("bad_input: "));
}

TEST(Safetensors, RefusesMoreTensorsThanAnyFileHas) {
    const auto header = [](std::size_t count) {
        std::string text = "{";
        for (std::size_t i = 0; i < count; ++i) {
            text +=
                (i == 0 ? "\"t" : ",\"t") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
        }
        return text + "}";
    };
    const std::string most = header(kMaxSafetensorsTensors);
    EXPECT_EQ(parseSafetensorsHeader(most, 8 + most.size(), "x").tensors.size(), kMaxSafetensorsTensors);
    const std::string more = header(kMaxSafetensorsTensors + 1);
    EXPECT_THAT(failure([&] { parseSafetensorsHeader(more, 8 + more.size(), "x"); }),
                HasSubstr("x: header: describes more than 262144 tensors"));
}

TEST(Safetensors, RefusesWhatIsNoSafetensorsFile) {
    const TempFolder folder;
    const auto refusal = [&](std::string_view bytes) {
        const std::string path = folder.write("x.safetensors", bytes);
        return failure([&] { SafetensorsFile::open(path); });
    };
    EXPECT_THAT(refusal(""), HasSubstr("at least 8"));
    EXPECT_THAT(refusal("1234567"), HasSubstr("at least 8"));
    EXPECT_THAT(refusal(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)), HasSubstr("header length"));
    EXPECT_THAT(refusal(std::string_view("\x03\0\0\0\0\0\0\0{}", 10)), HasSubstr("header length"));
    EXPECT_THAT(refusal(std::string_view("\0\0\0\0\0\0\0\0", 8)), HasSubstr("does not begin"));
    EXPECT_THAT(refusal("GGUF\x03 and more"), HasSubstr("unsupported: "));
    EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1"), HasSubstr("git lfs pull"));
    EXPECT_THAT(failure([&] { SafetensorsFile::open(folder.file("missing")); }), HasSubstr("No such file"));
    EXPECT_THAT(failure([&] { SafetensorsFile::open(folder.path()); }), HasSubstr("not a regular file"));
}

TEST(Safetensors, AFileThatShrinksIsAnError) {
    const TempFolder folder;
    const std::string path = folder.write(
        "x.safetensors", safetensorsBytes(R"({"a":{"dtype":"U8","shape":[64],"data_offsets":[0,64]}})", 64));
    const auto file = SafetensorsFile::open(path);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 10);
    std::array<char, 64> bytes{};
    EXPECT_THAT(failure([&] { file->read(*file->find("a"), 0, bytes.data(), 64); }), HasSubstr("shorter"));
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
    const TempFolder folder;
    const std::string path = folder.file("out.safetensors");
    const std::vector<TensorSpec> specs{{"x", DType::F32, {2, 2}}, {"empty", DType::BF16, {0}}, {"s", DType::U8, {3}}};
    const auto writer = SafetensorsWriter::create(path, specs, {{"format", "pt"}});
    const std::array<float, 4> x{1, -2, 3, 4};
    writer->write(x.data(), 12);
    writer->write(&x[3], 4);
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_THROW(writer->finish(), base::Internal);
    EXPECT_THROW(writer->write("abcd", 4), base::Internal);
    writer->write("abc", 3);
    writer->finish();
    const auto file = SafetensorsFile::open(path);
    std::array<float, 4> back{};
    file->read(*file->find("x"), 0, back.data(), 16);
    EXPECT_EQ(back, x);
    EXPECT_EQ(file->find("x")->offset % 8, 0U);
    EXPECT_EQ(file->metadata().at("format"), "pt");
    EXPECT_EQ(file->find("s")->bytes, 3U);
}

TEST(SafetensorsWriter, LeavesNothingWhenItIsGivenUp) {
    const TempFolder folder;
    {
        const auto writer = SafetensorsWriter::create(folder.file("out.safetensors"), {{"x", DType::U8, {4}}});
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    EXPECT_THAT(failure([&] { SafetensorsWriter::create(folder.file("no/out.safetensors"), {}); }),
                HasSubstr("creating: No such file"));
}

} // namespace
} // namespace vitrine::engine
