// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Compiles every example of every variant of the built-in pack and of the packs that come with the program, for every
// arch that its manifest names; needs NVRTC, no GPU. One test for each kernel family: kernels_tests
// --gtest_filter='*DeviceCompile*/rms_norm'. Results stay beside the program, so that only what changed is compiled
// again.

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>

#include "base/error.h"
#include "base/resource_path.h"
#include "base/thread_pool.h"
#include "kernels/cuda/jit/variant_compiler.h"
#include "tests/fixture_paths.h"

namespace vitrine::kernels {
namespace {

namespace fs = std::filesystem;

struct Job {
    const KernelPack* pack = nullptr;
    const KernelVariant* variant = nullptr;
    const std::map<std::string, std::int64_t>* example = nullptr;
    DeviceArch arch;
    std::string problem;

    std::string text() const {
        std::string out = variant->place + " (" + variant->family + "/" + variant->name + ", " + arch.name;
        for (const auto& [name, value] : *example) {
            out += " " + name + "=" + std::to_string(value);
        }
        return out + ")";
    }
};

/// The smallest device of an arch.
DeviceArch deviceOf(const std::string& name) {
    DeviceArch arch;
    arch.name = name;
    arch.number = archNumber(name);
    const int major = arch.number / 10;
    arch.multiprocessors = 80;
    arch.sharedPerBlock = arch.number == 80 ? 163 * 1024 : major == 8 || major == 12 ? 99 * 1024 : 227 * 1024;
    return arch;
}

std::vector<std::string> familiesOf(const KernelPack& pack) {
    std::set<std::string> names;
    for (const KernelVariant& variant : pack.variants()) {
        names.insert(variant.family);
    }
    return {names.begin(), names.end()};
}

std::vector<Job> jobsOf(const KernelPack& pack, const std::string& family) {
    std::vector<Job> jobs;
    for (const KernelVariant& variant : pack.variants()) {
        for (const std::string& arch : variant.archs) {
            for (const auto& example : variant.examples) {
                if (variant.family == family) {
                    jobs.push_back({&pack, &variant, &example, deviceOf(arch), {}});
                }
            }
        }
    }
    return jobs;
}

std::string checkLaunches(const Job& job, const CompiledKernel& kernel, const Expression::Lookup& lookup) {
    for (const KernelLaunchRule& launch : job.variant->launches) {
        const auto resources = std::find_if(kernel.resources.begin(), kernel.resources.end(),
                                            [&](const KernelResources& item) { return item.entry == launch.entry; });
        if (resources == kernel.resources.end()) {
            return "has no kernel " + launch.entry;
        }
        std::int64_t threads = 1;
        for (std::size_t i = 0; i < 3; ++i) {
            threads *= launch.block[i].evaluate(lookup);
            if (launch.grid[i].evaluate(lookup) < 0 || launch.cluster[i].evaluate(lookup) < 1) {
                return launch.entry + ": the grid is negative or the cluster empty";
            }
        }
        if (threads < 1 || threads > 1024) {
            return launch.entry + ": a block of " + std::to_string(threads) + " threads";
        }
        if (threads * resources->registers > 65536) {
            return launch.entry + ": " + std::to_string(resources->registers) + " registers do not fit " +
                   std::to_string(threads) + " threads; use __launch_bounds__";
        }
        const std::int64_t shared = launch.shared.evaluate(lookup);
        if (shared < 0 || shared + resources->staticShared > job.arch.sharedPerBlock) {
            return launch.entry + ": " + std::to_string(shared) + " bytes of shared memory";
        }
    }
    return {};
}

/// What is wrong with one example; empty when all is well.
std::string problemOf(const Job& job, CubinCache& cache) {
    const Expression::Lookup lookup = [&](std::string_view name) -> std::optional<std::int64_t> {
        const auto found = job.example->find(std::string(name));
        return found != job.example->end() ? std::optional(found->second) : deviceVariable(job.arch, name);
    };
    try {
        if (job.variant->when.evaluate(lookup) == 0) {
            return "the example does not meet `when`: " + job.variant->when.text();
        }
        const CompiledVariant compiled =
            compileVariant(specialize(*job.pack, *job.variant, lookup, job.arch.name), cache);
        std::string warnings;
        for (const std::string& warning : compiled.kernel.warnings) {
            warnings += warning + "\n";
        }
        return warnings.empty() ? checkLaunches(job, compiled.kernel, lookup) : warnings;
    } catch (const KernelCompileError& error) {
        return error.message() + "\n" + error.log();
    } catch (const base::Error& error) {
        return error.message();
    }
}

class DeviceCompile : public testing::TestWithParam<std::string> {};

void compileAll(std::vector<Job> jobs) {
    const fs::path program = fs::read_symlink("/proc/self/exe");
    CubinCache cache((program.parent_path() / "cubins").string(), std::uint64_t{1} << 30);
    EXPECT_FALSE(jobs.empty()) << "the family has no examples";
    base::ThreadPool pool;
    pool.parallelFor(static_cast<std::int64_t>(jobs.size()), 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            Job& job = jobs[static_cast<std::size_t>(i)];
            job.problem = problemOf(job, cache);
        }
    });
    for (const Job& job : jobs) {
        EXPECT_TRUE(job.problem.empty()) << job.text() << ": " << job.problem;
    }
}

TEST_P(DeviceCompile, EveryExampleForEveryArch) {
    if (Nvrtc::find() == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    compileAll(jobsOf(KernelPack::builtin(), GetParam()));
}

void compilePack(const std::string& folder) {
    const KernelPack pack = KernelPack::load(folder);
    for (const std::string& family : familiesOf(pack)) {
        compileAll(jobsOf(pack, family));
    }
}

TEST(DeviceCompilePacks, simple_moe) {
    if (Nvrtc::find() == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    compilePack(base::resourcePath("kernel-packs/simple-moe"));
}

// It compiles everywhere: what is wrong with it shows on a device.
TEST(DeviceCompilePacks, out_of_bounds) {
    if (Nvrtc::find() == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    compilePack(vitrine::test::fixture("kernel-packs/out-of-bounds"));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceCompile);
INSTANTIATE_TEST_SUITE_P(Builtin, DeviceCompile, testing::ValuesIn(familiesOf(KernelPack::builtin())),
                         [](const auto& family) { return family.param; });

} // namespace
} // namespace vitrine::kernels
