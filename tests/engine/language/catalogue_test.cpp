// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/catalogue.h"

#include <algorithm>
#include <map>

#include "tests/engine/language/language_testing.h"

namespace vitrine::engine {
namespace {

const std::vector<int>& documents() {
    static const std::vector<int> kIds = {0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2};
    return kIds;
}
// Beyond the table, loads are clamped to its last element.
int documentAt(int i) {
    return documents()[static_cast<std::size_t>(std::min(i, 10))];
}

TEST(ModCatalogue, ExamplesOfEveryFileMakePrograms) {
    std::size_t examples = 0;
    for (const ModCatalogueEntry& entry : modCatalogue()) {
        EXPECT_FALSE(entry.explanation.empty()) << entry.name;
        EXPECT_FALSE(entry.examples.empty()) << entry.name;
        const PyModule module = PyModule::parse(std::span(&entry.file, 1));
        EXPECT_FALSE(module.offers().empty()) << entry.name;
        for (const std::string& example : entry.examples) {
            ++examples;
            std::string problem;
            bool made = false;
            for (const bool isMask : {true, false}) {
                try {
                    const ChosenProgram program = isMask ? module.mask(example) : module.score(example);
                    EXPECT_EQ(program.program.isMask(), isMask);
                    EXPECT_NO_THROW(program.binding()) << example;
                    made = true;
                } catch (const PyError& error) {
                    problem += std::string(error.what()) + "\n" + error.excerpt() + "\n";
                }
            }
            EXPECT_TRUE(made) << example << "\n" << problem;
        }
    }
    EXPECT_GE(examples, 30U);
    EXPECT_NE(findMod("causal"), nullptr);
    EXPECT_EQ(findMod("no_such_mod"), nullptr);
}

TEST(ModCatalogue, MasksMeanWhatTheySay) {
    const std::map<std::string, MaskFunction> cases = {
        {"noop_mask", [](int, int, int, int) { return true; }},
        {"causal_mask", [](int, int, int q, int k) { return q >= k; }},
        {"sliding_window(5)", [](int, int, int q, int k) { return std::abs(q - k) <= 5; }},
        {"generate_sliding_window(5)", [](int, int, int q, int k) { return q >= k && q - k <= 5; }},
        {"generate_prefix_lm_mask(6)", [](int, int, int q, int k) { return k < 6 || q >= k; }},
        {"prefix_lm(torch.tensor([5, 9]))", [](int b, int, int q, int k) { return k < (b == 0 ? 5 : 9) || q >= k; }},
        {"document_mask(document_ids([3, 2, 6]))",
         [](int, int, int q, int k) { return documentAt(q) == documentAt(k); }},
        {"document_causal(document_ids([3, 2, 6]))",
         [](int, int, int q, int k) { return q >= k && documentAt(q) == documentAt(k); }},
        {"generate_doc_mask_mod(generate_sliding_window(1), length_to_offsets([3, 2, 6]))",
         [](int, int, int q, int k) { return documentAt(q) == documentAt(k) && q >= k && q - k <= 1; }},
        {"generate_packed_causal_doc_mask_mod(length_to_offsets([3, 2, 6]))",
         [](int, int, int q, int k) { return documentAt(q) == documentAt(k) ? q >= k : q >= k && k >= 11; }},
        {"document_prefix([3, 2, 6], [1, 2, 3])",
         [](int, int, int q, int k) {
             const int end[] = {1, 5, 8};
             return documentAt(q) == documentAt(k) && (k <= q || k < end[documentAt(q)]);
         }},
        {"generate_dilated_sliding_window(8, 3)",
         [](int, int, int q, int k) { return std::abs(q - k) <= 8 && std::abs(q - k) % 3 == 0; }},
        {"dilated_causal(3)", [](int, int, int q, int k) { return q >= k && (q - k) % 3 == 0; }},
        {"dilated_heads()", [](int, int h, int q, int k) { return q >= k && (q - k) % (h + 1) == 0; }},
        {"generate_global_sliding_window(2, torch.arange(24) < 3)",
         [](int, int, int q, int k) { return std::abs(q - k) <= 2 || q < 3 || k < 3; }},
        {"global_sliding_causal(2, 3)", [](int, int, int q, int k) { return q >= k && (q - k <= 2 || k < 3); }},
        {"strided(4)", [](int, int, int q, int k) { return q >= k && (q - k < 4 || (q - k) % 4 == 0); }},
        {"fixed(4, 2)", [](int, int, int q, int k) { return q >= k && (q / 4 == k / 4 || k % 4 >= 2); }},
        {"generate_shared_prefix_mask_mod(length_to_offsets([4, 3, 17]), torch.tensor([0, 0, 0]))",
         [](int, int, int q, int k) {
             const int begin = q < 4 ? 0 : q < 7 ? 4 : 7;
             return (k >= begin && k <= q) || (q >= 4 && k < 4);
         }},
        {"shared_prefix(4, 5)",
         [](int, int, int q, int k) {
             const auto answer = [](int i) { return i < 4 ? -1 : (i - 4) / 5; };
             return q >= k && (k < 4 || answer(q) == answer(k));
         }},
        {"generate_block_diffusion_mask(12, 4)",
         [](int, int, int q, int k) {
             const bool qClean = q >= 12;
             const bool kClean = k >= 12;
             const int qBlock = q % 12 / 4;
             const int kBlock = k % 12 / 4;
             return qClean ? kClean && qBlock >= kBlock : kClean ? qBlock > kBlock : qBlock == kBlock;
         }},
        {"generate_natten(6, 6, 3, 3)",
         [](int, int, int q, int k) {
             const auto near = [](int a, int b) { return std::abs(std::clamp(a, 1, 4) - b) <= 1; };
             return near(q / 6, k / 6) && near(q % 6, k % 6);
         }},
        {"attention_sinks(2, 4)", [](int, int, int q, int k) { return q >= k && (k < 2 || q - k < 4); }},
        {"batchify_mask_mod(causal_mask, 5)", [](int, int, int q, int k) { return q / 5 == k / 5 && q % 5 >= k % 5; }},
        {"and_masks(causal_mask, or_masks(sliding_window(2), dilated_causal(5)), noop_mask)",
         [](int, int, int q, int k) { return q >= k && (q - k <= 2 || (q - k) % 5 == 0); }},
    };
    for (const auto& [expression, expected] : cases) {
        expectMaskOf("", expression, expected);
    }
}

TEST(ModCatalogue, ScoresMeanWhatTheySay) {
    const auto slope = [](int h) { return std::exp2(-(h + 1)); };
    const std::map<std::string, ScoreFunction> cases = {
        {"noop", [](double s, int, int, int, int) { return s; }},
        {"relative_position(0.01)", [](double s, int, int, int q, int k) { return s + (q - k) * 0.01; }},
        {"relative_position_table(torch.arange(47) * 0.5, 24)",
         [](double s, int, int, int q, int k) { return s + 0.5 * (q - k + 23); }},
        {"generate_alibi_bias(8)", [=](double s, int, int h, int q, int k) { return s + slope(h) * (k - q); }},
        {"alibi(alibi_slopes(8))", [=](double s, int, int h, int q, int k) { return s + slope(h) * (k - q); }},
        {"soft_cap(2)", [](double s, int, int, int, int) { return 2 * std::tanh(s / 2); }},
        {"generate_tanh_softcap(3)", [](double s, int, int, int, int) { return 3 * std::tanh(s / 3); }},
    };
    for (const auto& [expression, expected] : cases) {
        expectScoreOf("", expression, expected);
    }
}

} // namespace
} // namespace vitrine::engine
