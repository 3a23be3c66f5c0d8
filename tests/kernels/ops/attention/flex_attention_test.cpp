// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/flex_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/program/interpreter.h"
#include "kernels/program/program_builder.h"
#include "tests/kernels/ops/attention/flex_fixture.h"
#include "tests/kernels/ops/common/op_testing.h"
#include "tests/kernels/program/program_testing.h"

namespace vitrine::kernels {
namespace {

using testing::Expr;
using testing::FlexFixture;
using testing::Maker;
using testing::TestTensor;

/// Programs of the fixtures; captures by name.
struct Named {
    std::optional<Program> score, mask;
};

Expr causal(Maker& m) {
    return m.q >= m.k;
}

Named programOf(const std::string& name) {
    Named out;
    Maker s;
    Maker m;
    const auto slopes = [&] { return s.load("slopes", ProgramType::Float, {s.h}, true); };
    const auto documents = [&](const Expr& at) { return m.load("document_id", ProgramType::Int32, {at}); };
    if (name == "relative") {
        out.score = s.finish(s.score + (s.q - s.k) * 0.01);
    } else if (name == "alibi_causal") {
        out.score = s.finish(s.score + slopes() * (s.k - s.q));
        out.mask = m.finish(causal(m));
    } else if (name == "softcap_causal") {
        out.score = s.finish((s.score / 2).of(ProgramOp::Tanh) * 2);
        out.mask = m.finish(causal(m));
    } else if (name == "causal") {
        out.mask = m.finish(causal(m));
    } else if (name == "sliding") {
        out.mask = m.finish(causal(m) & ((m.q - m.k) <= 17));
    } else if (name == "sliding100_sinks") {
        out.mask = m.finish(causal(m) & ((m.q - m.k) < 100));
    } else if (name == "prefix_lm") {
        out.mask = m.finish((m.k < m.load("prefix_length", ProgramType::Int32, {m.b})) | causal(m));
    } else if (name == "document_causal") {
        out.mask = m.finish(causal(m) & (documents(m.q) == documents(m.k)));
    } else if (name == "bias") {
        out.score = s.finish(s.score + s.load("bias", ProgramType::Float, {s.q, s.k}, true));
    } else if (name == "relbias") {
        out.score = s.finish(s.score + s.load("relbias", ProgramType::Float, {s.h, s.q - s.k + 383}, true));
    } else if (name == "dilated_head") {
        out.mask = m.finish(((m.q - m.k) % (m.h + 1) == 0) & causal(m));
    } else if (name == "empty_rows") {
        out.mask = m.finish((m.q >= m.number(50)) & (m.k <= m.q));
    }
    return out;
}

BoundProgram bind(const std::optional<Program>& program, const FlexFixture& fixture) {
    BoundProgram out;
    if (program.has_value()) {
        out.program = &*program;
        for (const ProgramCapture& capture : program->captures) {
            out.captures.tensors.push_back(fixture.view(capture.name));
        }
    }
    return out;
}

struct FlexCase {
    std::string fixture, name;
    friend void PrintTo(const FlexCase& c, std::ostream* out) { *out << c.fixture << "/" << c.name; }
};

std::vector<FlexCase> allCases() {
    std::vector<FlexCase> cases;
    for (const char* name : {"noop", "relative", "alibi_causal", "softcap_causal", "sliding", "prefix_lm",
                             "document_causal", "bias", "dilated_head", "empty_rows"}) {
        cases.push_back({"flex", name});
    }
    for (const char* name : {"causal", "alibi_causal", "relbias", "document_causal", "sliding100_sinks"}) {
        cases.push_back({"flex384", name});
    }
    return cases;
}

const FlexFixture& fixtureOf(const std::string& name) {
    static const FlexFixture kSmall("flex");
    static const FlexFixture kLarge("flex384");
    return name == "flex" ? kSmall : kLarge;
}

/// The rows that the fixture keeps, within 1e-5.
void expectRows(const TestTensor& actual, const FlexFixture& fixture, const std::string& name) {
    const TensorView expected = fixture.view(name);
    const Shape& shape = actual.view().shape;
    const std::vector<double> values = actual.values();
    double worst = 0;
    for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
        for (std::int64_t row = 0; row < expected.shape[2]; ++row) {
            for (std::int64_t i = 0; i < shape[3]; ++i) {
                const std::int64_t from =
                    (plane * shape[2] + testing::kFirstKeptRow + row * testing::kKeptRowStep) * shape[3] + i;
                const std::int64_t to = (plane * expected.shape[2] + row) * shape[3] + i;
                worst =
                    std::max(worst, std::fabs(values[static_cast<std::size_t>(from)] - expected.as<const float>()[to]));
            }
        }
    }
    EXPECT_LE(worst, 1e-5) << name;
    EXPECT_TRUE(actual.guardsIntact());
}

void expectAll(const TestTensor& actual, const FlexFixture& fixture, const std::string& name) {
    const std::vector<float> expected = fixture.floats(name);
    const std::vector<double> values = actual.values();
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], expected[i], 1e-5 * std::max(1.0F, std::fabs(expected[i]) / 10)) << name << " " << i;
    }
}

/// Everything that one run writes.
struct Pass {
    Pass(const FlexFixture& fixture, const Named& programs, bool sinks, const BlockMask* blocks) {
        op.q = fixture.view("q");
        op.k = fixture.view("k");
        op.v = fixture.view("v");
        op.score = bind(programs.score, fixture);
        op.mask = bind(programs.mask, fixture);
        op.blocks = blocks;
        op.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(op.q.shape[3])));
        if (sinks) {
            op.sinks = fixture.view("sinks");
            dSinks = TestTensor(DType::F32, op.sinks.shape);
        }
        out = TestTensor(DType::F32, op.q.shape);
        lse = TestTensor(DType::F32, Shape{op.q.shape[0], op.q.shape[1], op.q.shape[2]});
        dq = TestTensor(DType::F32, op.q.shape);
        dk = TestTensor(DType::F32, op.k.shape);
        dv = TestTensor(DType::F32, op.v.shape);
        op.out = out;
        op.lse = lse;
        back.gradOut = fixture.view("grad_out");
        back.dq = dq;
        back.dk = dk;
        back.dv = dv;
        back.dSinks = dSinks;
        for (const TensorView& capture : op.score.captures.tensors) {
            captures.emplace_back(DType::F32, capture.shape);
            back.dCaptures.push_back(captures.back());
        }
    }
    void execute(CpuContext& context) {
        testing::runOp(context, op);
        back.forward = op;
        testing::runOp(context, back);
    }
    FlexAttention op;
    FlexAttentionBackward back;
    TestTensor out, lse, dq, dk, dv, dSinks;
    std::vector<TestTensor> captures;
};

class FlexFixtures : public ::testing::TestWithParam<FlexCase> {};

TEST_P(FlexFixtures, OutputsAndGradientsWithin1e5) {
    const auto& [file, name] = GetParam();
    const FlexFixture& fixture = fixtureOf(file);
    const Named programs = programOf(name);
    const Shape shape = fixture.view("q").shape;
    base::ThreadPool pool(2);
    std::vector<std::optional<BlockMask>> masks(1);
    if (programs.mask.has_value()) {
        for (const std::int64_t block : {128, 33}) {
            masks.emplace_back(buildBlockMask(*programs.mask, bind(programs.mask, fixture).captures,
                                              {shape[0], shape[1], shape[2], shape[2], block, block}, pool));
        }
    }
    for (const std::optional<BlockMask>& blocks : masks) {
        testing::forEachSimd([&](CpuContext& context) {
            Pass run(fixture, programs, fixture.has(name + ".d.sinks"), blocks.has_value() ? &*blocks : nullptr);
            run.execute(context);
            expectRows(run.out, fixture, name + ".out");
            expectRows(run.dq, fixture, name + ".dq");
            expectRows(run.dk, fixture, name + ".dk");
            expectRows(run.dv, fixture, name + ".dv");
            if (fixture.has(name + ".lse")) {
                expectAll(run.lse, fixture, name + ".lse");
            }
            if (fixture.has(name + ".d.sinks")) {
                expectAll(run.dSinks, fixture, name + ".d.sinks");
            }
            for (std::size_t i = 0; i < run.captures.size(); ++i) {
                const std::string gradient = name + ".d." + programs.score->captures[i].name;
                if (fixture.has(gradient)) {
                    expectAll(run.captures[i], fixture, gradient);
                }
            }
        });
    }
}

TEST_P(FlexFixtures, BlockMaskArraysAreAsPyTorchs) {
    const auto& [file, name] = GetParam();
    const FlexFixture& fixture = fixtureOf(file);
    if (!fixture.has(name + ".bm.kv_num_blocks")) {
        return; // a score program alone, or made without one
    }
    const Named programs = programOf(name);
    const Shape shape = fixture.view("q").shape;
    const Shape recorded = fixture.view(name + ".bm.kv_num_blocks").shape;
    base::ThreadPool pool(1);
    BlockMask mask = buildBlockMask(*programs.mask, bind(programs.mask, fixture).captures,
                                    {recorded[0], recorded[1], shape[2], shape[2], 128, 128}, pool);
    const DenseBlockMask dense = denseBlockMask(mask, true, 1 << 20);
    const auto expectEqual = [&](const std::vector<std::int32_t>& ours, const std::string& field) {
        std::vector<std::int32_t> expected = fixture.integers(name + ".bm." + field);
        // The fixture repeats what does not depend on batch or heads.
        std::vector<std::int32_t> repeated;
        const std::int64_t planes = recorded[0] * recorded[1];
        const auto size = static_cast<std::ptrdiff_t>(ours.size()) / (mask.shape.batch * mask.shape.heads);
        for (std::int64_t plane = 0; plane < planes; ++plane) {
            const std::int64_t b = mask.shape.batch == 1 ? 0 : plane / recorded[1];
            const std::int64_t h = mask.shape.heads == 1 ? 0 : plane % recorded[1];
            const auto from = ours.begin() + (b * mask.shape.heads + h) * size;
            repeated.insert(repeated.end(), from, from + size);
        }
        EXPECT_EQ(repeated, expected) << name << " " << field;
    };
    expectEqual(dense.kvNumBlocks, "kv_num_blocks");
    expectEqual(dense.kvIndices, "kv_indices");
    expectEqual(dense.fullKvNumBlocks, "full_kv_num_blocks");
    expectEqual(dense.fullKvIndices, "full_kv_indices");
    expectEqual(dense.qNumBlocks, "q_num_blocks");
    expectEqual(dense.qIndices, "q_indices");
    expectEqual(dense.fullQNumBlocks, "full_q_num_blocks");
    expectEqual(dense.fullQIndices, "full_q_indices");
}

INSTANTIATE_TEST_SUITE_P(All, FlexFixtures, ::testing::ValuesIn(allCases()),
                         [](const auto& test) { return test.param.fixture + "_" + test.param.name; });

TEST(FlexAttention, EmptyRowsGiveZeroAndMinusInfinity) {
    const FlexFixture& fixture = fixtureOf("flex");
    const Named programs = programOf("empty_rows");
    CpuContext context(2);
    Pass run(fixture, programs, false, nullptr);
    run.execute(context);
    const std::vector<double> out = run.out.values();
    const std::vector<double> lse = run.lse.values();
    const std::vector<double> dq = run.dq.values();
    for (std::size_t row = 0; row < 50; ++row) {
        EXPECT_EQ(lse[row], -INFINITY);
        EXPECT_EQ(out[row * 32], 0);
        EXPECT_EQ(dq[row * 32], 0);
    }
    EXPECT_TRUE(std::isfinite(lse[50]));
}

TEST(FlexAttention, ScoresOfMinusInfinityBlock) {
    const FlexFixture& fixture = fixtureOf("flex");
    Maker s;
    Named blocked;
    blocked.score = s.finish(where((s.q >= s.number(50)) & (s.k <= s.q), s.score, s.number(-INFINITY)));
    CpuContext context(1);
    Pass run(fixture, blocked, false, nullptr);
    run.execute(context);
    expectRows(run.out, fixture, "empty_rows.out");
    expectRows(run.dq, fixture, "empty_rows.dq");
    expectRows(run.dk, fixture, "empty_rows.dk");
    expectRows(run.dv, fixture, "empty_rows.dv");
}

// Softmax does not see a constant that is added to all scores; an LSE of about 1000 in float32 would.
TEST(FlexAttention, GradientsDoNotSufferFromALargeLse) {
    const FlexFixture& fixture = fixtureOf("flex");
    Maker s;
    Named shifted;
    shifted.score = s.finish(s.score + 1000.3);
    CpuContext context(2);
    Pass plainly(fixture, {}, false, nullptr);
    Pass run(fixture, shifted, false, nullptr);
    plainly.execute(context);
    run.execute(context);
    EXPECT_GT(run.lse.values()[0], 990);
    for (const auto& [left, right] :
         {std::pair{&plainly.dq, &run.dq}, std::pair{&plainly.dk, &run.dk}, std::pair{&plainly.dv, &run.dv}}) {
        const std::vector<double> expected = left->values();
        const std::vector<double> found = right->values();
        for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(found[i], expected[i], 1e-6 * (1 + std::fabs(expected[i])));
        }
    }
}

TEST(FlexAttention, SameBitsForAnyNumberOfThreads) {
    const FlexFixture& fixture = fixtureOf("flex384");
    const Named programs = programOf("relbias");
    CpuContext one(1);
    CpuContext four(4);
    Pass a(fixture, programs, true, nullptr);
    Pass b(fixture, programs, true, nullptr);
    a.execute(one);
    b.execute(four);
    for (const auto& [left, right] : {std::pair{&a.out, &b.out}, std::pair{&a.dq, &b.dq}, std::pair{&a.dk, &b.dk},
                                      std::pair{&a.dSinks, &b.dSinks}, std::pair{&a.captures[0], &b.captures[0]}}) {
        EXPECT_EQ(left->values(), right->values());
    }
}

/// A plain computation in double.
struct Plain {
    std::vector<double> out, lse;
};
Plain plain(const FlexAttention& op, const std::vector<double>& q, const std::vector<double>& k,
            const std::vector<double>& v) {
    Plain result;
    const Shape& s = op.q.shape;
    const std::int64_t keys = op.k.shape[2];
    std::optional<Interpreter<double>> score, mask;
    if (!op.score.empty()) {
        score.emplace(*op.score.program, op.score.captures);
    }
    if (!op.mask.empty()) {
        mask.emplace(*op.mask.program, op.mask.captures);
    }
    for (std::int64_t b = 0; b < s[0]; ++b) {
        for (std::int64_t h = 0; h < s[1]; ++h) {
            const std::int64_t kv = b * op.k.shape[1] + h / (s[1] / op.k.shape[1]);
            for (std::int64_t i = 0; i < s[2]; ++i) {
                std::vector<double> scores;
                double sum = 0;
                double highest = -INFINITY;
                for (std::int64_t j = 0; j < keys; ++j) {
                    double x = 0;
                    for (std::int64_t d = 0; d < s[3]; ++d) {
                        x += q[static_cast<std::size_t>(((b * s[1] + h) * s[2] + i) * s[3] + d)] *
                             k[static_cast<std::size_t>((kv * keys + j) * s[3] + d)];
                    }
                    x *= static_cast<double>(op.scale);
                    if (score) {
                        score->run({b, h, i}, j, 1, &x);
                        x = score->floats()[0];
                    }
                    if (mask) {
                        mask->run({b, h, i}, j, 1, nullptr);
                        x = mask->booleans()[0] != 0 ? x : -INFINITY;
                    }
                    scores.push_back(x);
                    highest = std::max(highest, x);
                }
                std::vector<double> row(static_cast<std::size_t>(s[3]), 0);
                for (std::int64_t j = 0; j < keys && highest > -INFINITY; ++j) {
                    const double p = std::exp(scores[static_cast<std::size_t>(j)] - highest);
                    sum += p;
                    for (std::size_t d = 0; d < row.size(); ++d) {
                        row[d] += p * v[static_cast<std::size_t>((kv * keys + j) * s[3]) + d];
                    }
                }
                for (const double x : row) {
                    result.out.push_back(sum == 0 ? 0 : x / sum);
                }
                result.lse.push_back(sum == 0 ? -INFINITY : highest + std::log(sum));
            }
        }
    }
    return result;
}

TEST(FlexAttention, RandomProgramsShapesAndTypes) {
    std::mt19937 random(41);
    const auto pick = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)) + 1; };
    for (int i = 0; i < 40; ++i) {
        const std::int64_t batch = pick(2);
        const std::int64_t kvHeads = pick(2);
        const std::int64_t heads = kvHeads * pick(3);
        const std::int64_t queries = pick(70);
        const std::int64_t keys = pick(300);
        const std::int64_t dim = pick(40);
        const DType dtype = i % 3 == 0 ? DType::BF16 : i % 3 == 1 ? DType::F32 : DType::F64;
        testing::RandomProgram source(random, 300, heads);
        const Program mask = source.mask();
        const Program score = source.score();
        const testing::Captures maskCaptures = source.captures(mask);
        const testing::Captures scoreCaptures = source.captures(score);
        base::ThreadPool pool(1);
        const BlockMask blocks =
            buildBlockMask(mask, maskCaptures.binding, {batch, heads, queries, keys, pick(80), pick(80)}, pool);
        TestTensor q(dtype, Shape{batch, heads, queries, dim});
        TestTensor k(dtype, Shape{batch, kvHeads, keys, dim});
        TestTensor v(dtype, Shape{batch, kvHeads, keys, dim});
        q.fillNormal(random, 0.5);
        k.fillNormal(random, 0.5);
        v.fillNormal(random);
        TestTensor out(dtype, q.view().shape);
        TestTensor lse(dtype == DType::F64 ? DType::F64 : DType::F32, Shape{batch, heads, queries});
        FlexAttention op;
        op.q = q;
        op.k = k;
        op.v = v;
        op.score = {&score, scoreCaptures.binding};
        op.mask = {&mask, maskCaptures.binding};
        op.blocks = i % 2 == 0 ? &blocks : nullptr;
        op.scale = 0.3F;
        op.out = out;
        op.lse = lse;
        CpuContext context(2);
        testing::runOp(context, op);
        const Plain expected = plain(op, q.values(), k.values(), v.values());
        const std::vector<double> lses = lse.values();
        bool finite = true;
        for (std::size_t row = 0; row < lses.size(); ++row) {
            finite = finite && (std::isfinite(expected.lse[row]) || expected.lse[row] == -INFINITY) &&
                     std::fabs(expected.lse[row]) < 1e3;
            if (expected.lse[row] == -INFINITY) {
                EXPECT_EQ(lses[row], -INFINITY);
                finite = true;
            }
        }
        if (finite) { // a program may overflow
            testing::expectNear(out, expected.out, dtype == DType::BF16 ? 2e-2 : 2e-6, 4);
        }
    }
}

TEST(FlexAttention, CountsTheWorkOfNonEmptyBlocks) {
    TestTensor q(DType::F32, Shape{2, 4, 512, 16});
    TestTensor out(DType::F32, q.view().shape);
    const Program mask = causalMask();
    FlexAttention op;
    op.q = op.k = op.v = q;
    op.out = out;
    EXPECT_EQ(cost(op, {}).flops, 4ULL * 8 * 512 * 512 * 16);
    op.mask.program = &mask;
    EXPECT_EQ(cost(op, {}).flops, 4ULL * 8 * 10 * 128 * 128 * 16);
    base::ThreadPool pool(1);
    const BlockMask blocks = buildBlockMask(mask, {}, {2, 4, 512, 512, 128, 128}, pool);
    op.blocks = &blocks;
    EXPECT_EQ(cost(op, {}).flops, 4ULL * 8 * 10 * 128 * 128 * 16);
    FlexAttentionBackward back;
    back.forward = op;
    EXPECT_EQ(cost(back, {}).flops, 10ULL * 8 * 10 * 128 * 128 * 16);
}

TEST(FlexAttention, ChecksNameWhatIsWrong) {
    TestTensor q(DType::F32, Shape{1, 4, 8, 16});
    TestTensor k(DType::F32, Shape{1, 2, 8, 16});
    TestTensor v(DType::F32, Shape{1, 2, 8, 16});
    TestTensor out(DType::F32, Shape{1, 4, 8, 16});
    FlexAttention op;
    op.q = q;
    op.k = k;
    op.v = v;
    op.out = out;
    check(op);
    FlexAttention wrong = op;
    wrong.v = out;
    testing::expectCheckNames(wrong, "v");
    wrong = op;
    wrong.out = q;
    testing::expectCheckNames(wrong, "out");
    const Program mask = causalMask();
    wrong = op;
    wrong.score.program = &mask;
    testing::expectCheckNames(wrong, "score");
    base::ThreadPool pool(1);
    const BlockMask blocks = buildBlockMask(mask, {}, {1, 1, 9, 9, 4, 4}, pool);
    wrong = op;
    wrong.mask.program = &mask;
    wrong.blocks = &blocks;
    testing::expectCheckNames(wrong, "blocks");
}

} // namespace
} // namespace vitrine::kernels
