// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Every collective over 1 to 8 ranks, on fresh random data, against float64; gradients by the inner products that they
// must keep: the sum over ranks of <op(x), g> is that of <x, gradient(g)>.

#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <thread>

#include "kernels/context/context_options.h"
#include "kernels/context/device_group.h"
#include "kernels/context/meta_context.h"
#include "kernels/context/thread_ranks.h"
#include "kernels/ops/comm/all_gather.h"
#include "kernels/ops/comm/all_reduce.h"
#include "kernels/ops/comm/all_to_all.h"
#include "kernels/ops/comm/broadcast.h"
#include "kernels/ops/comm/finish_block.h"
#include "kernels/ops/comm/send_receive.h"
#include "tests/kernels/core/plain_device.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr int kRankCounts[] = {1, 2, 3, 4, 8};

/// Ranks with a communicator each, also where there is one alone.
class Ranks {
public:
    explicit Ranks(int count) : communicators_(makeThreadRanks(count)) {}

    int size() const { return static_cast<int>(communicators_.size()); }

    void run(const std::function<void(CpuContext&, Communicator&)>& work) {
        std::vector<std::thread> threads;
        for (const std::unique_ptr<Communicator>& each : communicators_) {
            threads.emplace_back([&] {
                CpuContext context(1);
                work(context, *each);
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

private:
    std::vector<std::unique_ptr<Communicator>> communicators_;
};

std::vector<TestTensor> tensors(int ranks, DType type, const std::function<Shape(int)>& shape) {
    std::vector<TestTensor> out;
    for (int rank = 0; rank < ranks; ++rank) {
        out.emplace_back(type, shape(rank));
    }
    return out;
}

std::vector<TestTensor> random(int ranks, DType type, const std::function<Shape(int)>& shape) {
    std::mt19937 engine{std::random_device{}()};
    std::vector<TestTensor> out = tensors(ranks, type, shape);
    for (TestTensor& each : out) {
        each.fillNormal(engine);
    }
    return out;
}

TestTensor& of(std::vector<TestTensor>& all, const Communicator& communicator) {
    return all[static_cast<std::size_t>(communicator.rank())];
}

double dot(const TestTensor& a, const TestTensor& b) {
    const std::vector<double> x = a.values(), y = b.values();
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

double dots(const std::vector<TestTensor>& a, const std::vector<TestTensor>& b) {
    double sum = 0;
    for (std::size_t rank = 0; rank < a.size(); ++rank) {
        sum += dot(a[rank], b[rank]);
    }
    return sum;
}

std::vector<double> sumOf(const std::vector<TestTensor>& all) {
    std::vector<double> sum(all.front().values().size(), 0);
    for (const TestTensor& each : all) {
        const std::vector<double> values = each.values();
        std::transform(sum.begin(), sum.end(), values.begin(), sum.begin(), std::plus<>());
    }
    return sum;
}

std::function<Shape(int)> always(const Shape& shape) {
    return [shape](int) { return shape; };
}

std::function<Shape(int)> parts(std::int64_t rows, std::int64_t columns, int axis, int ranks) {
    return [=](int rank) {
        const std::int64_t share = rankShare(axis == 0 ? rows : columns, rank, ranks).count();
        return axis == 0 ? Shape{share, columns} : Shape{rows, share};
    };
}

TEST(RankShare, CoversEverythingEvenlyInOrder) {
    for (const std::int64_t total : {0, 1, 7, 64, 151'936}) {
        for (int size = 1; size <= 9; ++size) {
            std::int64_t next = 0;
            for (int rank = 0; rank < size; ++rank) {
                const RankShare share = rankShare(total, rank, size);
                EXPECT_EQ(share.begin, next);
                EXPECT_GE(share.count(), total / size);
                EXPECT_LE(share.count(), total / size + 1);
                next = share.end;
            }
            EXPECT_EQ(next, total);
        }
    }
}

TEST(AllReduce, SumsOfAllRanksAreTheSameBits) {
    for (const int count : kRankCounts) {
        for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
            for (const std::int64_t elements : {1, 5, 1030}) {
                Ranks ranks(count);
                std::vector<TestTensor> x = random(count, type, always(Shape{elements}));
                std::vector<TestTensor> out = tensors(count, type, always(Shape{elements}));
                const std::vector<double> expected = sumOf(x);
                ranks.run([&](CpuContext& context, Communicator& all) {
                    testing::runOp(context, AllReduce{of(x, all), of(out, all), &all, {}});
                });
                testing::expectNear(out.front(), expected, 1e-5, 1);
                for (const TestTensor& each : out) {
                    EXPECT_EQ(each.values(), out.front().values());
                    EXPECT_TRUE(each.guardsIntact());
                }
                ranks.run([&](CpuContext& context, Communicator& all) { // in place
                    testing::runOp(context, AllReduce{of(x, all), of(x, all), &all, {}});
                });
                EXPECT_EQ(x.back().values(), out.front().values());
            }
        }
    }
}

TEST(AllReduce, Gradient) {
    Ranks ranks(3);
    std::vector<TestTensor> x = random(3, DType::F64, always(Shape{17})), y = tensors(3, DType::F64, always(Shape{17}));
    std::vector<TestTensor> g = random(3, DType::F64, always(Shape{17})),
                            dx = tensors(3, DType::F64, always(Shape{17}));
    ranks.run([&](CpuContext& context, Communicator& all) {
        const AllReduce op{of(x, all), of(y, all), &all, {}};
        testing::runOp(context, op);
        testing::runOp(context, gradientOf(op, of(g, all), of(dx, all)));
    });
    EXPECT_NEAR(dots(y, g), dots(x, dx), 1e-10);
}

TEST(AllGather, PutsPartsSideBySideAndItsGradientScattersSums) {
    for (const int count : kRankCounts) {
        for (const int axis : {0, 1}) {
            constexpr std::int64_t kRows = 9, kColumns = 11; // most rank counts divide neither
            Ranks ranks(count);
            const auto whole = always(Shape{kRows, kColumns});
            std::vector<TestTensor> x = random(count, DType::F64, parts(kRows, kColumns, axis, count));
            std::vector<TestTensor> y = tensors(count, DType::F64, whole), g = random(count, DType::F64, whole);
            std::vector<TestTensor> dx = tensors(count, DType::F64, parts(kRows, kColumns, axis, count));
            ranks.run([&](CpuContext& context, Communicator& all) {
                const AllGather op{of(x, all), of(y, all), axis, &all, {}};
                testing::runOp(context, op);
                testing::runOp(context, gradientOf(op, of(g, all), of(dx, all)));
            });
            const std::vector<double> gathered = y.front().values();
            for (int rank = 0; rank < count; ++rank) {
                const auto at = static_cast<std::size_t>(rank);
                EXPECT_EQ(y[at].values(), gathered);
                const RankShare share = rankShare(axis == 0 ? kRows : kColumns, rank, count);
                const std::vector<double> part = x[at].values();
                std::size_t next = 0;
                for (std::int64_t row = axis == 0 ? share.begin : 0; row < (axis == 0 ? share.end : kRows); ++row) {
                    for (std::int64_t c = axis == 1 ? share.begin : 0; c < (axis == 1 ? share.end : kColumns); ++c) {
                        ASSERT_EQ(gathered[static_cast<std::size_t>(row * kColumns + c)], part[next++]);
                    }
                }
                EXPECT_TRUE(y[at].guardsIntact() && dx[at].guardsIntact());
            }
            EXPECT_NEAR(dots(y, g), dots(x, dx), 1e-10);
        }
    }
}

TEST(ReduceScatter, GivesEachRankItsPartOfTheSumAndItsGradientGathers) {
    for (const int count : kRankCounts) {
        for (const int axis : {0, 1}) {
            constexpr std::int64_t kRows = 13, kColumns = 10;
            Ranks ranks(count);
            const auto whole = always(Shape{kRows, kColumns});
            std::vector<TestTensor> x = random(count, DType::F64, whole), dx = tensors(count, DType::F64, whole);
            std::vector<TestTensor> y = tensors(count, DType::F64, parts(kRows, kColumns, axis, count));
            std::vector<TestTensor> g = random(count, DType::F64, parts(kRows, kColumns, axis, count));
            std::vector<TestTensor> sums = tensors(count, DType::F64, whole), again = tensors(count, DType::F64, whole);
            ranks.run([&](CpuContext& context, Communicator& all) {
                const ReduceScatter op{of(x, all), of(y, all), axis, &all, {}};
                testing::runOp(context, op);
                testing::runOp(context, gradientOf(op, of(g, all), of(dx, all)));
                testing::runOp(context, AllReduce{of(x, all), of(sums, all), &all, {}});
                testing::runOp(context, AllGather{of(y, all), of(again, all), axis, &all, {}});
            });
            EXPECT_EQ(again.front().values(), sums.front().values()) << "scattered and gathered is reduced";
            EXPECT_NEAR(dots(y, g), dots(x, dx), 1e-10);
        }
    }
}

TEST(AllToAll, TransposesBlocksAndItsGradientSendsThemBack) {
    for (const int count : kRankCounts) {
        Ranks ranks(count);
        const auto shape = always(Shape{count, 3, 2});
        std::vector<TestTensor> x = random(count, DType::BF16, shape), y = tensors(count, DType::BF16, shape);
        std::vector<TestTensor> back = tensors(count, DType::BF16, shape);
        ranks.run([&](CpuContext& context, Communicator& all) {
            const AllToAll op{of(x, all), of(y, all), &all};
            testing::runOp(context, op);
            testing::runOp(context, gradientOf(op, of(y, all), of(back, all)));
        });
        for (std::size_t to = 0; to < x.size(); ++to) {
            EXPECT_EQ(back[to].values(), x[to].values());
            for (std::size_t from = 0; from < x.size(); ++from) {
                const std::vector<double> sent = x[from].values(), received = y[to].values();
                EXPECT_TRUE(std::equal(sent.begin() + static_cast<std::ptrdiff_t>(6 * to),
                                       sent.begin() + static_cast<std::ptrdiff_t>(6 * to + 6),
                                       received.begin() + static_cast<std::ptrdiff_t>(6 * from)));
            }
        }
    }
}

TEST(Broadcast, GivesAllTheRootsAndItsGradientSumsAtTheRoot) {
    for (const int count : kRankCounts) {
        for (int root = 0; root < count; ++root) {
            Ranks ranks(count);
            const auto shape = always(Shape{19});
            std::vector<TestTensor> x = random(count, DType::F64, shape), g = random(count, DType::F64, shape);
            std::vector<TestTensor> dx = tensors(count, DType::F64, shape);
            const std::vector<double> sent = x[static_cast<std::size_t>(root)].values();
            ranks.run([&](CpuContext& context, Communicator& all) {
                const Broadcast op{of(x, all), root, &all};
                testing::runOp(context, op);
                testing::runOp(context, gradientOf(op, of(g, all), of(dx, all)));
            });
            const std::vector<double> sum = sumOf(g);
            for (int rank = 0; rank < count; ++rank) {
                EXPECT_EQ(x[static_cast<std::size_t>(rank)].values(), sent);
                testing::expectNear(dx[static_cast<std::size_t>(rank)],
                                    rank == root ? sum : std::vector<double>(sum.size(), 0), 1e-12);
            }
        }
    }
}

TEST(SendReceive, PassesAlongTheRanksWhileOthersWait) {
    constexpr int kCount = 4;
    Ranks ranks(kCount);
    std::vector<TestTensor> x = random(kCount, DType::F32, always(Shape{1000}));
    const std::vector<double> first = x.front().values();
    ranks.run([&](CpuContext& context, Communicator& all) {
        if (all.rank() > 0) {
            testing::runOp(context, Receive{of(x, all), all.rank() - 1, &all});
        }
        if (all.rank() + 1 < all.size()) {
            const Send op{of(x, all), all.rank() + 1, &all};
            testing::runOp(context, op);
            EXPECT_EQ(gradientOf(op, of(x, all)).from, op.to);
        }
    });
    EXPECT_EQ(x.back().values(), first);
}

TEST(FinishBlock, ReducesNormsAndAdds) {
    for (const int count : kRankCounts) {
        for (const bool norms : {false, true}) {
            std::mt19937 engine(3);
            Ranks ranks(count);
            const auto shape = always(Shape{5, 64});
            std::vector<TestTensor> partial = random(count, DType::F32, shape);
            TestTensor residual(DType::F32, Shape{5, 64}), weight(DType::F32, Shape{64});
            residual.fillNormal(engine);
            weight.fillNormal(engine);
            std::vector<double> expected = sumOf(partial);
            const std::vector<double> added = residual.values(), scale = weight.values();
            for (std::size_t row = 0; row < 5; ++row) {
                double squares = 0;
                for (std::size_t i = 0; i < 64; ++i) {
                    squares += expected[row * 64 + i] * expected[row * 64 + i];
                }
                const double root = norms ? std::sqrt(squares / 64 + 1e-5) : 1;
                for (std::size_t i = 0; i < 64; ++i) {
                    double& value = expected[row * 64 + i];
                    value = added[row * 64 + i] + value / root * (norms ? scale[i] : 1);
                }
            }
            std::vector<TestTensor> out = tensors(count, DType::F32, shape);
            ranks.run([&](CpuContext& context, Communicator& all) {
                FinishBlock op{of(partial, all), {}, residual, of(out, all), &all, {}};
                if (norms) {
                    op.postNorm.weight = weight;
                }
                testing::runOp(context, op);
            });
            testing::expectNear(out.front(), expected, 2e-5);
            for (const TestTensor& each : out) {
                EXPECT_EQ(each.values(), out.front().values());
            }
        }
    }
}

/// Meta ranks wait for the slowest, and then for the links.
TEST(CollectivesOnMeta, TakeTheTimeOfTheSlowestRankAndOfTheLinks) {
    ContextOptions options;
    options.backend = Backend::Meta;
    options.traits = test::plainDevice();
    options.traits.links.bandwidth = 1e9;
    options.traits.links.seconds = 1e-3;
    DeviceGroup group(std::vector<ContextOptions>(4, options));
    group.run([](Context& context) {
        context.passTime(context.rank() == 2 ? 5e-3 : 1e-3);
        const TensorView x{reinterpret_cast<void*>(256), DType::F32, Shape{1'000'000}, {}}; // NOLINT
        AllReduce op{x, x, context.communicator(), {}};
        op.scratch = x;
        context.run(op);
        // 2 * 3/4 of 4 MB at 1 GB/s and a round of 1 ms, beside 8 MB of memory at 1 TB/s.
        EXPECT_NEAR(static_cast<double>(context.clock().now()), 5e6 + 6e6 + 1e6 + 8e3, 2e3);
    });
}

} // namespace
} // namespace vitrine::kernels
