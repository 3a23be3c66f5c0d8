// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/batch_inputs.h"

#include "tests/engine/training/shared_prompt_support.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using Numbers = std::vector<std::int32_t>;

/// What a batch uploads for a model on the CPU.
struct Uploaded {
    explicit Uploaded(const std::string& name, const TrainingBatch& batch)
        : trained(name), runner(*trained.context, trained.context->memory().general(), kernels::DType::F32),
          inputs(runner, *trained.model, batch) {}

    static Numbers numbers(const kernels::TensorView& view) {
        const auto* from = view.as<const std::int32_t>();
        return {from, from + view.shape.count()};
    }

    test::TrainedModel trained;
    OpRunner runner;
    BatchInputs inputs;
};

TrainingBatch ofLengths(Numbers lengths, Numbers prefixes) {
    TrainingBatch batch;
    batch.lengths = std::move(lengths);
    batch.prefixes = std::move(prefixes);
    batch.tokens.resize(static_cast<std::size_t>(batch.count()), 1);
    batch.targets.resize(batch.tokens.size(), 2);
    return batch;
}

TEST(BatchInputs, PositionsGoOnFromThePrefix) {
    const Uploaded shared("llama", ofLengths({3, 2, 2, 1, 3}, {-1, 0, -1, 2, 0}));
    EXPECT_EQ(Uploaded::numbers(shared.inputs.tokens().positions), (Numbers{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5}));
    EXPECT_TRUE(shared.inputs.sharesPrompts());
    const DocumentPlaces& places = shared.inputs.places();
    EXPECT_EQ(Uploaded::numbers(places.starts), (Numbers{0, 0, 0, 3, 3, 5, 5, 7, 8, 8, 8}));
    EXPECT_EQ(Uploaded::numbers(places.prefixStarts), (Numbers{0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0}));
    EXPECT_EQ(Uploaded::numbers(places.prefixEnds), (Numbers{0, 0, 0, 3, 3, 0, 0, 7, 3, 3, 3}));
}

TEST(BatchInputs, WithoutPrefixesEveryDocumentBeginsAtZero) {
    for (const Numbers& prefixes : {Numbers{}, Numbers{-1, -1}}) {
        const Uploaded plain("llama", ofLengths({3, 2}, prefixes));
        EXPECT_EQ(Uploaded::numbers(plain.inputs.tokens().positions), (Numbers{0, 1, 2, 0, 1}));
        EXPECT_FALSE(plain.inputs.sharesPrompts());
        EXPECT_FALSE(plain.inputs.places().starts.empty());
        EXPECT_TRUE(plain.inputs.places().prefixEnds.empty());
    }
}

TEST(BatchInputs, RefusesPrefixesThatAreNoEarlierDocumentsWithoutOne) {
    for (const Numbers& prefixes : {Numbers{-1, 1, -1}, Numbers{1, -1, -1}, Numbers{-1, 0, 1}, Numbers{-1, 0},
                                    Numbers{-1, -2, 0}, Numbers{0, -1, -1}}) {
        EXPECT_THROW(Uploaded("llama", ofLengths({3, 2, 2}, prefixes)), base::Internal);
    }
}

/// The model's context has 16 tokens; beyond that its frequencies follow the length of each sequence.
TEST(BatchInputs, DynamicFrequenciesAreThoseOfTheWholeSequence) {
    const Uploaded shared("llama-dynamic-rope", ofLengths({15, 8, 8}, {-1, 0, 0}));
    const Uploaded whole("llama-dynamic-rope", ofLengths({23}, {}));
    const auto first = [](const Uploaded& from, std::size_t part) {
        const kernels::TensorView& table = from.inputs.tokens().rope[part].inverseFrequency;
        return std::vector<float>(table.as<const float>(), table.as<const float>() + table.shape.count());
    };
    for (const std::size_t part : {0U, 1U, 2U}) {
        EXPECT_EQ(first(shared, part), first(whole, 0));
    }
    EXPECT_NO_THROW(Uploaded("llama-dynamic-rope", ofLengths({10, 6, 2}, {-1, 0, 0})));
    EXPECT_THROW(Uploaded("llama-dynamic-rope", ofLengths({15, 8, 7}, {-1, 0, 0})), base::Unsupported);
    EXPECT_THROW(Uploaded("llama-dynamic-rope", ofLengths({10, 6, 7}, {-1, 0, 0})), base::Unsupported);
}

} // namespace
} // namespace vitrine::engine
