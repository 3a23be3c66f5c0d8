// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/request_fields.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vitrine::app {
namespace {

using nlohmann::json;

constexpr RequestField used(std::string_view name, FieldOf endpoint = FieldOf::Both) {
    return {name, endpoint, FieldUse::Used, {}, {}};
}

constexpr RequestField harmless(std::string_view name, std::string_view reason) {
    return {name, FieldOf::Both, FieldUse::Harmless, {}, reason};
}

constexpr RequestField refused(std::string_view name, std::string_view neutral, std::string_view reason,
                               FieldOf endpoint = FieldOf::Both) {
    return {name, endpoint, FieldUse::Refused, neutral, reason};
}

constexpr std::string_view kNone = "[false, \"\", [], {}]";
constexpr std::string_view kNever = "[]";
constexpr std::string_view kFalse = "[false]";
constexpr std::string_view kTrue = "[true]";
constexpr std::string_view kZero = "[0]";
constexpr std::string_view kOne = "[1]";

constexpr std::string_view kFreeText = "not supported; no grammar or schema holds the answer";
constexpr std::string_view kOtherSampling = "not supported; use temperature, top_k, top_p and min_p";
constexpr std::string_view kNoBeams = "not supported; answers are drawn token by token";
constexpr std::string_view kTextOnly = "not supported; this server takes and gives text";
constexpr std::string_view kUseMaxTokens = "not supported; use max_tokens";
constexpr std::string_view kUseLogprobs = "not supported; use logprobs, with echo for those of the prompt";
constexpr std::string_view kOneAdapter = "not supported; start the server with the adapter (--adapter)";
constexpr std::string_view kAnswerOnly = "not supported; the answer has no such part";
constexpr std::string_view kWholePrompt = "not supported; send the prompt as short as it is to be";

constexpr std::string_view kForAccounts = "it is for accounts and their records";
constexpr std::string_view kForCaches = "answers do not depend on what is cached";
constexpr std::string_view kForOrder = "answers do not depend on the order of requests";
constexpr std::string_view kOfOtherField = "it does nothing without another field, which is refused";

constexpr std::array kFields = {
    // OpenAI
    used("model"),
    used("messages", FieldOf::Chat),
    used("prompt", FieldOf::Completions),
    used("max_tokens"),
    used("max_completion_tokens", FieldOf::Chat),
    used("temperature"),
    used("top_p"),
    used("n"),
    used("stop"),
    used("seed"),
    used("stream"),
    used("stream_options"),
    used("logprobs"),
    used("top_logprobs", FieldOf::Chat),
    used("logit_bias"),
    used("frequency_penalty"),
    used("presence_penalty"),
    used("echo", FieldOf::Completions),
    used("best_of", FieldOf::Completions),
    used("reasoning_effort", FieldOf::Chat),
    used("tools", FieldOf::Chat),
    used("tool_choice", FieldOf::Chat),
    used("functions", FieldOf::Chat),
    used("function_call", FieldOf::Chat),
    used("audio", FieldOf::Chat),
    used("response_format"),
    refused("suffix", kNone, "not supported; the model completes at the end only"),
    refused("modalities", R"([[], ["text"]])", kTextOnly),
    refused("prediction", kNone, "not supported; start the server with --speculate to guess tokens"),
    refused("verbosity", R"(["medium"])", "not supported; say in a message how long the answer is to be"),
    refused("web_search_options", kNever, "not supported; this server looks nothing up"),
    harmless("parallel_tool_calls", "answers call no tools"),
    harmless("user", kForAccounts),
    harmless("safety_identifier", kForAccounts),
    harmless("metadata", kForAccounts),
    harmless("store", kForAccounts),
    harmless("service_tier", kForOrder),
    harmless("prompt_cache_key", kForCaches),
    harmless("prompt_cache_retention", kForCaches),
    // vLLM and SGLang
    used("top_k"),
    used("min_p"),
    used("repetition_penalty"),
    used("min_tokens"),
    used("ignore_eos"),
    used("stop_token_ids"),
    used("chat_template", FieldOf::Chat),
    used("chat_template_kwargs", FieldOf::Chat),
    used("add_generation_prompt", FieldOf::Chat),
    used("continue_final_message", FieldOf::Chat),
    used("documents", FieldOf::Chat),
    refused("echo", kFalse, "not supported for messages; use /v1/completions", FieldOf::Chat),
    refused("best_of", kOne, kNoBeams, FieldOf::Chat),
    refused("use_beam_search", kFalse, kNoBeams),
    refused("length_penalty", kOne, kNoBeams),
    refused("early_stopping", kFalse, kNoBeams),
    refused("skip_special_tokens", kTrue, "not supported; answers have no special tokens"),
    refused("spaces_between_special_tokens", kTrue, "not supported; answers have no special tokens"),
    refused("add_special_tokens", kFalse, "not supported; the template alone adds special tokens", FieldOf::Chat),
    refused("add_special_tokens", kTrue, "not supported; give token ids for a prompt without special tokens",
            FieldOf::Completions),
    refused("include_stop_str_in_output", kFalse, "not supported; answers end before a stop text"),
    refused("no_stop_trim", kFalse, "not supported; answers end before a stop text"),
    refused("stop_regex", kNone, "not supported; use stop"),
    refused("bad_words", kNone, "not supported; use logit_bias with -100 for single tokens"),
    refused("allowed_token_ids", kNever, "not supported; use logit_bias"),
    refused("logits_processors", kNone, "not supported; use logit_bias"),
    refused("custom_logit_processor", kNone, "not supported; use logit_bias"),
    refused("custom_params", kNone, "not supported; use logit_bias"),
    refused("prompt_logprobs", kFalse, "not supported; use /v1/completions with echo and logprobs"),
    refused("truncate_prompt_tokens", kNever, kWholePrompt),
    refused("guided_json", kNever, kFreeText),
    refused("guided_regex", kNever, kFreeText),
    refused("guided_choice", kNever, kFreeText),
    refused("guided_grammar", kNever, kFreeText),
    refused("structured_outputs", "[{}]", kFreeText),
    refused("structural_tag", kNever, kFreeText),
    refused("regex", kNever, kFreeText),
    refused("ebnf", kNever, kFreeText),
    refused("json_schema", kNever, kFreeText),
    refused("grammar", "[\"\"]", kFreeText),
    harmless("guided_decoding_backend", kOfOtherField),
    harmless("guided_whitespace_pattern", kOfOtherField),
    refused("include_reasoning", kTrue, "not supported; reasoning_content has the thoughts"),
    refused("separate_reasoning", kTrue, "not supported; reasoning_content has the thoughts"),
    harmless("stream_reasoning", "thoughts are streamed as they come"),
    refused("thinking_token_budget", kNever, "not supported; use max_tokens or reasoning_effort"),
    refused("return_tokens_as_token_ids", kFalse, kAnswerOnly),
    refused("return_token_ids", kFalse, kAnswerOnly),
    refused("return_hidden_states", kFalse, kAnswerOnly),
    refused("logprob_token_ids", kNone, kUseLogprobs),
    refused("prompt_embeds", kNone, kTextOnly),
    refused("mm_processor_kwargs", kNone, kTextOnly),
    refused("media_io_kwargs", kNone, kTextOnly),
    refused("repetition_detection", kNone, "not supported; use repetition_penalty or frequency_penalty"),
    refused("cache_salt", kNone, "not supported; requests share what --share-prefixes keeps"),
    refused("kv_transfer_params", kNone, "not supported; each server keeps its own cache"),
    refused("session_params", kNone, "not supported; send the whole prompt with each request"),
    refused("vllm_xargs", kNone, "not supported; this is not vLLM"),
    refused("lora_path", kNone, kOneAdapter),
    harmless("priority", kForOrder),
    harmless("data_parallel_rank", kForOrder),
    harmless("request_id", "the server names its answers"),
    harmless("rid", "the server names its answers"),
    // llama.cpp
    refused("n_predict", kNever, kUseMaxTokens),
    refused("repeat_penalty", kOne, "not supported; use repetition_penalty"),
    refused("repeat_last_n", "[-1]", "not supported; repetition_penalty counts all tokens"),
    refused("penalize_nl", kNever, "not supported; repetition_penalty counts all tokens"),
    refused("typical_p", kOne, kOtherSampling),
    refused("tfs_z", kOne, kOtherSampling),
    refused("top_a", kZero, kOtherSampling),
    refused("top_n_sigma", "[0, -1]", kOtherSampling),
    refused("mirostat", kZero, kOtherSampling),
    harmless("mirostat_tau", kOfOtherField),
    harmless("mirostat_eta", kOfOtherField),
    refused("dynatemp_range", kZero, kOtherSampling),
    harmless("dynatemp_exponent", kOfOtherField),
    refused("xtc_probability", kZero, kOtherSampling),
    harmless("xtc_threshold", kOfOtherField),
    refused("dry_multiplier", kZero, kOtherSampling),
    harmless("dry_base", kOfOtherField),
    harmless("dry_allowed_length", kOfOtherField),
    harmless("dry_penalty_last_n", kOfOtherField),
    harmless("dry_sequence_breakers", kOfOtherField),
    refused("samplers", kNone, "not supported; the order of samplers is fixed"),
    refused("min_keep", "[0, 1]", kOtherSampling),
    refused("n_keep", "[0, -1]", kWholePrompt),
    refused("n_discard", kZero, kWholePrompt),
    refused("n_indent", kZero, "not supported; the answer is text as the model writes it"),
    refused("n_probs", kZero, kUseLogprobs),
    refused("post_sampling_probs", kFalse, kUseLogprobs),
    refused("t_max_predict_ms", "[0, -1]", kUseMaxTokens),
    refused("lora", kNone, kOneAdapter),
    refused("reasoning_format", R"(["auto"])", "not supported; reasoning_content has the thoughts"),
    refused("thinking_forced_open", kFalse, "not supported; the template says where thoughts begin"),
    refused("parse_tool_calls", kFalse, "not supported; answers call no tools"),
    refused("response_fields", kNone, kAnswerOnly),
    refused("return_tokens", kFalse, kAnswerOnly),
    refused("return_progress", kFalse, kAnswerOnly),
    refused("timings_per_token", kFalse, kAnswerOnly),
    harmless("cache_prompt", kForCaches),
    harmless("id_slot", kForCaches),
    // TGI
    refused("inputs", kNever, "not supported; use prompt or messages"),
    refused("parameters", kNone, "not supported; name its fields beside the prompt"),
    refused("max_new_tokens", kNever, kUseMaxTokens),
    refused("min_new_tokens", kZero, "not supported; use min_tokens"),
    refused("do_sample", kNever, "not supported; temperature 0 takes the likeliest token, more than 0 samples"),
    refused("watermark", kFalse, kOtherSampling),
    refused("truncate", kNever, kWholePrompt),
    refused("return_full_text", kFalse, "not supported; use echo"),
    refused("details", kFalse, kUseLogprobs),
    refused("decoder_input_details", kFalse, kUseLogprobs),
    refused("top_n_tokens", kZero, kUseLogprobs),
    refused("adapter_id", kNone, kOneAdapter),
    refused("guideline", kNone, "not supported; say it in a message"),
    refused("tool_prompt", kNone, "not supported; say it in a message"),
};

constexpr std::array kStreamFields = {
    used("include_usage"),
    harmless("include_obfuscation", "it only adds characters that are no part of the answer"),
    refused("continuous_usage_stats", kFalse, "not supported; include_usage gives the counts at the end"),
};

bool isOf(const RequestField& field, Endpoint endpoint) {
    return field.endpoint == FieldOf::Both || (field.endpoint == FieldOf::Chat) == (endpoint == Endpoint::Chat);
}

[[noreturn]] void refuseField(const std::string& param, const std::string& name, std::string_view reason) {
    throw ApiError(kBadRequest, fmt::format("{}: {}", name, reason), param);
}

/// `place`: where the fields stand, as "stream_options."; empty: in the body itself.
void checkFields(const json& object, std::span<const RequestField> fields, Endpoint endpoint,
                 const std::string& place) {
    for (const auto& [name, value] : object.items()) {
        if (value.is_null()) {
            continue;
        }
        const std::string shown = place + name.substr(0, 64);
        const std::string param = place.empty() ? name.substr(0, 64) : place.substr(0, place.size() - 1);
        const RequestField* row = nullptr;
        bool known = false;
        for (const RequestField& field : fields) {
            const bool named = field.name == name;
            known = known || named;
            row = row == nullptr && named && isOf(field, endpoint) ? &field : row;
        }
        if (!known) {
            refuseField(param, shown, "unknown; leave it out, for nothing here heeds it");
        }
        if (row == nullptr) {
            refuseField(param, shown,
                        endpoint == Endpoint::Chat ? "only for /v1/completions" : "only for /v1/chat/completions");
        }
        if (row->use == FieldUse::Refused) {
            const json neutral = json::parse(row->neutral);
            if (std::ranges::find(neutral, value) == neutral.end()) {
                refuseField(param, shown, row->reason);
            }
        }
    }
}

} // namespace

std::span<const RequestField> requestFields() {
    return kFields;
}

void checkRequestFields(const json& body, Endpoint endpoint) {
    checkFields(body, kFields, endpoint, {});
    if (const auto options = body.find("stream_options"); options != body.end() && options->is_object()) {
        checkFields(*options, kStreamFields, endpoint, "stream_options.");
    }
}

} // namespace vitrine::app
