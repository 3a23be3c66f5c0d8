// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstdlib>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/shards.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::copyFixture;
using test::failure;
using test::readBytes;
using test::TempFolder;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

std::string openFailure(const std::string& model) {
    return failure([&] { openModel(model); });
}

TEST(Checkpoint, ShardsAreOneModel) {
    const auto checkpoint = Checkpoint::open(vitrine::test::fixture("gpt-oss-bf16"));
    const auto* location = checkpoint->find("model.layers.3.mlp.experts.down_proj");
    ASSERT_NE(location, nullptr);
    EXPECT_EQ(location->entry->shape, (std::vector<std::int64_t>{4, 64, 64}));
    EXPECT_EQ(checkpoint->find("nothing"), nullptr);
    EXPECT_EQ(checkpoint->tensors().size(), 4U * 17 + 3);
}

TEST(Checkpoint, IndexIsChecked) {
    const TempFolder folder;
    copyFixture("gpt-oss-bf16", folder);
    const std::string indexPath = folder.file("model.safetensors.index.json");
    const json good = json::parse(readBytes(indexPath));
    const auto refusal = [&](const std::function<void(json&)>& change) {
        json index = good;
        change(index);
        folder.write("model.safetensors.index.json", index.dump());
        return openFailure(folder.path());
    };
    const char* norm = "model.norm.weight";
    EXPECT_EQ(refusal([](json&) {}), "no error");
    EXPECT_EQ(refusal([](json& i) { i.erase("metadata"); }), "no error");
    EXPECT_EQ(refusal([](json& i) { i["metadata"]["total_size"] = 1.5; }), "no error");
    for (const char* path : {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", "a\\b"}) {
        EXPECT_THAT(refusal([&](json& i) { i["weight_map"][norm] = path; }), HasSubstr("is not a plain file name"))
            << path;
    }
    EXPECT_THAT(refusal([&](json& i) { i["weight_map"][norm] = "model-00009.safetensors"; }),
                HasSubstr("not in the folder"));
    EXPECT_THAT(refusal([&](json& i) { i["weight_map"][norm] = 3; }), HasSubstr("must be a text"));
    EXPECT_THAT(refusal([&](json& i) { i["weight_map"]["new.weight"] = i["weight_map"][norm]; }),
                HasSubstr("\"new.weight\" is not in \"model-"));
    EXPECT_THAT(refusal([&](json& i) { i.erase("weight_map"); }), HasSubstr("weight_map: must be an object"));
    EXPECT_THAT(refusal([&](json& i) { i["weight_map"] = json::object(); }), HasSubstr("names no tensor"));
    folder.write("model.safetensors.index.json", good.dump());
    fs::copy_file(folder.file("model-00001-of-00004.safetensors"), folder.file("copy.safetensors"));
    EXPECT_THAT(refusal([&](json& i) {
                    for (auto& [name, file] : i["weight_map"].items()) {
                        if (file == "model-00001-of-00004.safetensors") {
                            file = "copy.safetensors";
                            break;
                        }
                    }
                }),
                HasSubstr("as well; a tensor may be in one file only"));
}

TEST(Checkpoint, WhatIsNoFileIsRefused) {
    for (const char* name : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                             "chat_template.jinja", "model.safetensors"}) {
        const TempFolder folder;
        copyFixture("llama", folder);
        const fs::path path = folder.file(name);
        fs::remove(path);
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
        EXPECT_THAT(openFailure(folder.path()), HasSubstr(name)) << "a pipe";
        fs::remove(path);
        fs::create_symlink("nowhere", path);
        EXPECT_NE(openFailure(folder.path()), "no error") << "a link to nothing in place of " << name;
    }
}

TEST(Checkpoint, TensorsMustFitTheConfig) {
    const TempFolder folder;
    copyFixture("llama", folder);
    const json good = json::parse(readBytes(folder.file("config.json")));
    const auto refusal = [&](const std::string& key, const json& value) {
        json config = good;
        config[key] = value;
        folder.write("config.json", config.dump());
        return openFailure(folder.path());
    };
    EXPECT_THAT(refusal("num_hidden_layers", 4), HasSubstr("model.layers.3.input_layernorm.weight: is missing"));
    EXPECT_THAT(
        refusal("intermediate_size", 128),
        HasSubstr("/model.safetensors: model.layers.0.mlp.gate_proj.weight: has shape (96, 64), but config.json "
                  "needs (128, 64)"));
    EXPECT_THAT(refusal("attention_bias", true), HasSubstr("model.layers.0.self_attn.q_proj.bias: is missing"));
    EXPECT_EQ(refusal("num_hidden_layers", 2), "no error");
    EXPECT_EQ(refusal("tie_word_embeddings", true), "no error");
}

TEST(Checkpoint, FloatWeightsMayHaveAnyOfThreeTypes) {
    const TempFolder folder;
    const ModelSource source = openModel("synthetic:tiny-qwen3");
    const auto writeAs = [&](kernels::DType dtype) {
        std::vector<TensorSpec> specs = expectedTensors(source.config);
        for (TensorSpec& spec : specs) {
            spec.dtype = dtype;
        }
        const auto writer = SafetensorsWriter::create(folder.file("model.safetensors"), specs);
        for (const TensorSpec& spec : specs) {
            const std::vector<char> zeros(bytesOf(spec));
            writer->write(zeros.data(), zeros.size());
        }
        writer->finish();
        folder.write("config.json", source.configText);
        return openFailure(folder.path());
    };
    EXPECT_EQ(writeAs(kernels::DType::F32), "no error");
    EXPECT_EQ(writeAs(kernels::DType::F16), "no error");
    EXPECT_THAT(writeAs(kernels::DType::I16),
                HasSubstr("embed_tokens.weight: has dtype I16, but must be BF16, F16 or F32"));
}

TEST(Checkpoint, ExpertsMayBeStoredInEitherForm) {
    const TempFolder folder;
    copyFixture("gpt-oss-mxfp4", folder);
    json config = json::parse(readBytes(folder.file("config.json")));
    config.erase("quantization_config");
    folder.write("config.json", config.dump());
    EXPECT_NE(openModel(folder.path()).config.packing("model.layers.0.mlp.experts.down_proj"), nullptr);

    ModelSource fused = openModel("synthetic:tiny-qwen3-moe");
    fused.config.fusedExperts = true;
    const std::vector<TensorSpec> specs = expectedTensors(fused.config);
    const TempFolder other;
    const auto writer = SafetensorsWriter::create(other.file("model.safetensors"), specs);
    for (const TensorSpec& spec : specs) {
        const std::vector<char> zeros(bytesOf(spec));
        writer->write(zeros.data(), zeros.size());
    }
    writer->finish();
    other.write("config.json", fused.configText);
    EXPECT_TRUE(openModel(other.path()).config.fusedExperts);
}

TEST(OpenModel, SaysWhatIsWrongWithTheFolder) {
    const TempFolder folder;
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("config.json: not found; give the folder of a model"));
    folder.write("adapter_config.json", "{}");
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("an adapter"));
    folder.write("model.Q4.gguf", "GGUF");
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("give the GGUF file itself"));
    EXPECT_THAT(openFailure(folder.file("model.Q4.gguf")), HasSubstr("model.Q4.gguf: version: needs 4 bytes at 4"));
    folder.write("renamed", "GGUF....");
    EXPECT_THAT(openFailure(folder.file("renamed")), HasSubstr("renamed: version: "));
    fs::remove(folder.file("model.Q4.gguf"));
    folder.write("config.json", R"({"model_type": "llama"})");
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("weights: neither model.safetensors nor"));
    folder.write("pytorch_model.bin", "x");
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("unsupported: "));
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("pickled"));
    EXPECT_THAT(openFailure(folder.file("config.json")), HasSubstr("is a file; give the folder"));
    EXPECT_THAT(openFailure("/no/such/folder"), HasSubstr("/no/such/folder: no such folder"));
    EXPECT_THAT(openFailure(""), HasSubstr("no such folder"));
    folder.write("config.json", "{\"model_type\": \"llama\",}");
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("config.json: line 1"));
    fs::remove(folder.file("config.json"));
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("config.json: not found"));
    fs::create_directory(folder.file("config.json"));
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("config.json: is no regular file"));
}

TEST(OpenModel, FindsModelsInTheHuggingFaceCache) {
    const TempFolder cache;
    const fs::path model = fs::path(cache.path()) / "models--acme--tiny-llama";
    fs::create_directories(model / "refs");
    fs::create_directories(model / "snapshots" / "0123abcd");
    fs::create_directories(model / "blobs");
    for (const char* file : {"config.json", "model.safetensors"}) {
        fs::copy_file(fs::path(vitrine::test::fixture("llama")) / file, model / "blobs" / file);
        fs::create_symlink(fs::path("../../blobs") / file, model / "snapshots" / "0123abcd" / file);
    }
    std::ofstream(model / "refs" / "main") << "0123abcd";
    ASSERT_EQ(setenv("HF_HUB_CACHE", cache.path().c_str(), 1), 0);
    EXPECT_EQ(openModel("acme/tiny-llama").folder, (model / "snapshots" / "0123abcd").string());
    std::ofstream(model / "refs" / "main") << "../../../..";
    EXPECT_EQ(openModel("acme/tiny-llama").folder, (model / "snapshots" / "0123abcd").string()); // the only one
    fs::create_directories(model / "snapshots" / "4567");
    EXPECT_THAT(openFailure("acme/tiny-llama"), HasSubstr("refs/main: names no snapshot, and there are 2"));
    EXPECT_THAT(openFailure("acme/other"), HasSubstr("neither a folder nor a model in the Hugging Face cache"));
    EXPECT_THAT(openFailure("../other"), HasSubstr("no such folder"));
    unsetenv("HF_HUB_CACHE");
}

TEST(OpenModel, ReadsTheFilesBesideTheWeights) {
    const TempFolder folder;
    copyFixture("llama", folder);
    folder.write("tokenizer.json", "{}");
    folder.write("tokenizer_config.json",
                 R"({"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})");
    EXPECT_EQ(openModel(folder.path()).chat.templates["default"], "D");
    EXPECT_EQ(openModel(folder.path()).tokenizerFile, folder.file("tokenizer.json"));
    folder.write("tokenizer_config.json",
                 R"({"chat_template": "inline", "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false},
                     "add_bos_token": true, "tokenizer_class": "GPT2Tokenizer", "unk_token": null})");
    folder.write("special_tokens_map.json", R"({"bos_token": "other", "cls_token": "<cls>"})");
    const std::map<std::string, std::string> tokens = {
        {"bos_token", "<s>"}, {"cls_token", "<cls>"}, {"eos_token", "</s>"}};
    EXPECT_EQ(openModel(folder.path()).chat.specialTokens, tokens);
    EXPECT_EQ(openModel(folder.path()).chat.templates["default"], "inline");
    folder.write("chat_template.jinja", "own file");
    fs::create_directories(folder.path() / fs::path("additional_chat_templates"));
    folder.write("additional_chat_templates/tool_use.jinja", "tools");
    EXPECT_EQ(openModel(folder.path()).chat.templates["tool_use"], "tools");
    const TempFolder copy;
    EXPECT_THAT(copySmallFiles(folder.path(), copy.path()),
                testing::Contains("additional_chat_templates/tool_use.jinja"));
    EXPECT_EQ(readChatFiles(copy.path()).templates, openModel(folder.path()).chat.templates);
    EXPECT_EQ(openModel(folder.path()).chat.templates["default"], "own file");
    folder.write("generation_config.json", R"({"eos_token_id": "two"})");
    EXPECT_THAT(openFailure(folder.path()), HasSubstr("generation_config.json: eos_token_id: must be an integer"));
}

} // namespace
} // namespace vitrine::engine
