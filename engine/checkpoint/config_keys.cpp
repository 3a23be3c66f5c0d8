// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/config_keys.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vitrine::engine {
namespace {

using nlohmann::json;

/// The value with which a key changes nothing.
enum class Neutral : std::uint8_t { Nothing, Zero, One, False, True };

bool isNeutral(const json& value, Neutral neutral) {
    const auto isNumber = [&](double number) { return value.is_number() && value.get<double>() == number; };
    const bool empty = (value.is_structured() || value.is_string()) && value.empty();
    switch (neutral) {
    case Neutral::Nothing:
        break;
    case Neutral::Zero:
        return empty || isNumber(0) || value == json(false);
    case Neutral::One:
        return isNumber(1);
    case Neutral::False:
        return empty || value == json(false);
    case Neutral::True:
        return value == json(true);
    }
    return empty;
}

struct ForeignKey {
    const char* key;
    Neutral neutral;
};

/// What other families multiply, clip, rotate or leave out. Models of merged or renamed families carry such keys, and
/// programs that read them compute something else.
constexpr std::array kForeignKeys{
    ForeignKey{"clip_qkv", Neutral::Zero},
    ForeignKey{"attention_chunk_size", Neutral::Zero},
    ForeignKey{"num_kv_shared_layers", Neutral::Zero},
    ForeignKey{"per_layer_config", Neutral::Zero},
    ForeignKey{"shared_expert_intermediate_size", Neutral::Zero},
    ForeignKey{"num_shared_experts", Neutral::Zero},
    ForeignKey{"attn_logit_softcap", Neutral::Zero},
    ForeignKey{"attention_logit_cap", Neutral::Zero},
    ForeignKey{"logits_soft_cap", Neutral::Zero},
    ForeignKey{"no_rope_layer_interval", Neutral::Zero},
    ForeignKey{"embedding_multiplier", Neutral::One},
    ForeignKey{"residual_multiplier", Neutral::One},
    ForeignKey{"logits_scaling", Neutral::One},
    ForeignKey{"logit_scale", Neutral::One},
    ForeignKey{"attention_multiplier", Neutral::One},
    ForeignKey{"attention_in_multiplier", Neutral::One},
    ForeignKey{"attention_out_multiplier", Neutral::One},
    ForeignKey{"key_multiplier", Neutral::One},
    ForeignKey{"lm_head_multiplier", Neutral::One},
    ForeignKey{"scale_emb", Neutral::One},
    ForeignKey{"rope_ratio", Neutral::One},
    ForeignKey{"rotary_pct", Neutral::One},
    ForeignKey{"rotary_percent", Neutral::One},
    ForeignKey{"rope_percent", Neutral::One},
    ForeignKey{"scale_depth", Neutral::Nothing},
    ForeignKey{"dim_model_base", Neutral::Nothing},
    ForeignKey{"rotary_dim", Neutral::Nothing},
    ForeignKey{"rope_local_base_freq", Neutral::Nothing},
    ForeignKey{"local_rope_theta", Neutral::Nothing},
    ForeignKey{"global_rope_theta", Neutral::Nothing},
    ForeignKey{"swa_rope_theta", Neutral::Nothing},
    ForeignKey{"no_rope_layers", Neutral::Nothing},
    ForeignKey{"pruned_heads", Neutral::Nothing},
    ForeignKey{"block_configs", Neutral::Nothing},
    ForeignKey{"text_config", Neutral::Nothing},
    ForeignKey{"vision_config", Neutral::Nothing},
    ForeignKey{"audio_config", Neutral::Nothing},
    ForeignKey{"use_qk_norm", Neutral::False},
    ForeignKey{"qk_norm", Neutral::False},
    ForeignKey{"qk_layernorm", Neutral::False},
    ForeignKey{"is_encoder_decoder", Neutral::False},
    ForeignKey{"add_cross_attention", Neutral::False},
    ForeignKey{"alibi", Neutral::False},
    ForeignKey{"use_alibi", Neutral::False},
    ForeignKey{"parallel_attn", Neutral::False},
    ForeignKey{"use_parallel_residual", Neutral::False},
    ForeignKey{"use_bidirectional_attention", Neutral::False},
    ForeignKey{"attn_temperature_tuning", Neutral::False},
    ForeignKey{"attention_k_eq_v", Neutral::False},
    ForeignKey{"use_bias", Neutral::False},
    ForeignKey{"bias", Neutral::False},
    ForeignKey{"mlp_bias", Neutral::False},
    ForeignKey{"lm_head_bias", Neutral::False},
    ForeignKey{"is_causal", Neutral::True},
    ForeignKey{"quantization", Neutral::Nothing}, // of MLX, whose tensors are its own
};

/// Names only: what they say is about training, other programs' kernels, text, or the file itself.
constexpr std::array<std::string_view, 71> kHarmlessKeys{"dtype",
                                                         "torch_dtype",
                                                         "initializer_range",
                                                         "initializer_factor",
                                                         "use_cache",
                                                         "transformers_version",
                                                         "_name_or_path",
                                                         "name_or_path",
                                                         "_commit_hash",
                                                         "auto_map",
                                                         "attention_dropout",
                                                         "attn_dropout",
                                                         "attn_pdrop",
                                                         "embd_pdrop",
                                                         "resid_pdrop",
                                                         "hidden_dropout",
                                                         "hidden_dropout_prob",
                                                         "attention_probs_dropout_prob",
                                                         "classifier_dropout",
                                                         "dropout",
                                                         "router_aux_loss_coef",
                                                         "router_z_loss_coef",
                                                         "router_jitter_noise",
                                                         "output_router_logits",
                                                         "aux_loss_alpha",
                                                         "seq_aux",
                                                         "ep_size",
                                                         "initial_context_length",
                                                         "pretraining_tp",
                                                         "output_attentions",
                                                         "output_hidden_states",
                                                         "return_dict",
                                                         "cache_implementation",
                                                         "id2label",
                                                         "label2id",
                                                         "num_labels",
                                                         "problem_type",
                                                         "finetuning_task",
                                                         "task_specific_params",
                                                         "chunk_size_feed_forward",
                                                         "_from_model_config",
                                                         "attn_implementation",
                                                         "_attn_implementation",
                                                         "_attn_implementation_autoset",
                                                         "_attn_implementation_internal",
                                                         "_flash_attn_2_enabled",
                                                         "use_flash_attention",
                                                         "use_flash_attn",
                                                         "num_nextn_predict_layers",
                                                         "num_mtp_layers",
                                                         "qk_head_dim",
                                                         "is_decoder",
                                                         "cross_attention_hidden_size",
                                                         "tie_encoder_decoder",
                                                         "torchscript",
                                                         "use_bfloat16",
                                                         "tokenizer_class",
                                                         "tokenizer_model_max_length",
                                                         "model_max_length",
                                                         "decoder_start_token_id",
                                                         "sep_token_id",
                                                         "cls_token_id",
                                                         "mask_token_id",
                                                         "unk_token_id",
                                                         "prefix",
                                                         "gradient_checkpointing",
                                                         "unsloth_fixed",
                                                         "unsloth_version",
                                                         "transformers.js_config",
                                                         "tf_legacy_loss",
                                                         "language_model_only"};

struct GenerationKey {
    std::string_view key;
    Neutral neutral;
};

/// Keys that change answers, with what changes none.
constexpr std::array kGenerationKeys{
    GenerationKey{"do_sample", Neutral::False},
    GenerationKey{"temperature", Neutral::One},
    GenerationKey{"top_p", Neutral::One},
    GenerationKey{"top_k", Neutral::Nothing},
    GenerationKey{"min_p", Neutral::Zero},
    GenerationKey{"repetition_penalty", Neutral::One},
    GenerationKey{"typical_p", Neutral::One},
    GenerationKey{"top_h", Neutral::One},
    GenerationKey{"epsilon_cutoff", Neutral::Zero},
    GenerationKey{"eta_cutoff", Neutral::Zero},
    GenerationKey{"no_repeat_ngram_size", Neutral::Zero},
    GenerationKey{"encoder_no_repeat_ngram_size", Neutral::Zero},
    GenerationKey{"encoder_repetition_penalty", Neutral::One},
    GenerationKey{"suppress_tokens", Neutral::Nothing},
    GenerationKey{"begin_suppress_tokens", Neutral::Nothing},
    GenerationKey{"bad_words_ids", Neutral::Nothing},
    GenerationKey{"forced_bos_token_id", Neutral::Nothing},
    GenerationKey{"forced_eos_token_id", Neutral::Nothing},
    GenerationKey{"forced_decoder_ids", Neutral::Nothing},
    GenerationKey{"sequence_bias", Neutral::Nothing},
    GenerationKey{"num_beams", Neutral::One},
    GenerationKey{"num_beam_groups", Neutral::One},
    GenerationKey{"num_return_sequences", Neutral::One},
    GenerationKey{"diversity_penalty", Neutral::Zero},
    GenerationKey{"penalty_alpha", Neutral::Zero},
    GenerationKey{"exponential_decay_length_penalty", Neutral::Nothing},
    GenerationKey{"guidance_scale", Neutral::One},
    GenerationKey{"watermarking_config", Neutral::Nothing},
    GenerationKey{"dola_layers", Neutral::Nothing},
    GenerationKey{"token_healing", Neutral::False},
    GenerationKey{"constraints", Neutral::Nothing},
    GenerationKey{"force_words_ids", Neutral::Nothing},
    GenerationKey{"min_length", Neutral::Zero},
    GenerationKey{"min_new_tokens", Neutral::Zero},
    GenerationKey{"stop_strings", Neutral::Nothing},
};

/// How long an answer may be is an option here; beams have no lengths to weigh when there is one; the rest is about
/// speed or what is returned.
constexpr std::array<std::string_view, 40> kHarmlessGenerationKeys{"max_length",
                                                                   "max_new_tokens",
                                                                   "max_time",
                                                                   "length_penalty",
                                                                   "early_stopping",
                                                                   "renormalize_logits",
                                                                   "remove_invalid_values",
                                                                   "use_cache",
                                                                   "use_mtp",
                                                                   "cache_implementation",
                                                                   "cache_config",
                                                                   "max_cache_len",
                                                                   "low_memory",
                                                                   "output_attentions",
                                                                   "output_hidden_states",
                                                                   "output_scores",
                                                                   "output_logits",
                                                                   "return_dict_in_generate",
                                                                   "return_legacy_cache",
                                                                   "decoder_start_token_id",
                                                                   "is_assistant",
                                                                   "num_assistant_tokens",
                                                                   "num_assistant_tokens_schedule",
                                                                   "assistant_confidence_threshold",
                                                                   "assistant_early_exit",
                                                                   "assistant_lookbehind",
                                                                   "assistant_ensemble_weight",
                                                                   "target_lookbehind",
                                                                   "speculation_type",
                                                                   "prompt_lookup_num_tokens",
                                                                   "max_matching_ngram_size",
                                                                   "compile_config",
                                                                   "disable_compile",
                                                                   "continuous_batching_config",
                                                                   "prefill_chunk_size",
                                                                   "generation_kwargs",
                                                                   "transformers_version",
                                                                   "_from_model_config",
                                                                   "_commit_hash",
                                                                   "trust_remote_code"};

/// Whether the classes that the model was saved as have the head of a language model, or none: one that classifies or
/// rewards gives other numbers.
bool predictsTokens(const json& classes) {
    const auto does = [](const json& name) {
        const std::string text = name.is_string() ? name.get<std::string>() : "";
        return text.ends_with("ForCausalLM") || text.ends_with("LMHeadModel") ||
               (text.ends_with("Model") && !text.ends_with("RewardModel"));
    };
    return classes.is_array() && std::ranges::all_of(classes, does);
}

} // namespace

bool isHarmlessKey(std::string_view key, const json& value) {
    if (key == "architectures") {
        return predictsTokens(value);
    }
    const bool switchedOff = key == "use_sliding_window" && value == json(false);
    return switchedOff || std::ranges::find(kHarmlessKeys, key) != kHarmlessKeys.end() ||
           isNeutralGenerationKey(key, value);
}

bool isNeutralGenerationKey(std::string_view key, const json& value) {
    if (std::ranges::find(kHarmlessGenerationKeys, key) != kHarmlessGenerationKeys.end()) {
        return true;
    }
    const auto found = std::ranges::find(kGenerationKeys, key, &GenerationKey::key);
    return found != kGenerationKeys.end() && isNeutral(value, found->neutral);
}

void refuseForeignFields(ConfigReader& reader, const ModelConfig& config) {
    const auto refuseUnless = [&](const char* key, Neutral neutral) {
        const json* value = reader.find(key);
        if (value != nullptr && !isNeutral(*value, neutral)) {
            reader.unsupported(key, fmt::format("is not supported for {}", familyName(config.family)));
        }
    };
    const std::set<std::string, std::less<>> own = reader.asked();
    for (const ForeignKey& foreign : kForeignKeys) {
        if (own.find(foreign.key) == own.end()) {
            refuseUnless(foreign.key, foreign.neutral);
        }
    }
    if (config.family != Family::DeepseekV3) {
        refuseUnless("routed_scaling_factor", Neutral::One);
        refuseUnless("n_shared_experts", Neutral::Zero);
    }
    if (config.family == Family::Mistral) {
        refuseUnless("attention_bias", Neutral::False);
    }
    if (config.family == Family::Qwen2) {
        refuseUnless("attention_bias", Neutral::True); // its class has biases, whatever a file says
    }
    if (config.family != Family::Gemma2) {
        for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar"}) {
            refuseUnless(key, Neutral::Nothing);
        }
    } else {
        reader.find("hidden_act"); // its class reads hidden_activation
    }
}

} // namespace vitrine::engine
