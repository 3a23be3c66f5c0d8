// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/kernel_library.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/error.h"
#include "base/log.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/jit/variant_compiler.h"

namespace vitrine::kernels {

DeviceArch archOf(const CudaDeviceInfo& device) {
    DeviceArch arch;
    // The tensor cores of 9.0 need its own instruction set; others run their portable one.
    arch.name = fmt::format("sm_{}{}{}", device.major, device.minor, device.major == 9 && device.minor == 0 ? "a" : "");
    arch.number = device.major * 10 + device.minor;
    arch.multiprocessors = device.multiprocessors;
    arch.sharedPerBlock = device.sharedPerBlock;
    return arch;
}

std::int64_t variable(const KernelCall& call, std::string_view name) {
    for (const KernelVariable& item : call.variables) {
        if (item.name == name) {
            return item.value;
        }
    }
    throw base::Internal(fmt::format("the call of {} has no variable {}", call.family, name));
}

namespace {

/// Choices kept; a run with ever new shapes starts over instead of growing.
constexpr std::size_t kMaxChoices = 16384;

/// "rms_norm" is RmsNorm.
std::string opName(std::string_view family) {
    std::string name;
    bool upper = true;
    for (const char c : family) {
        if (c == '_') {
            upper = true;
            continue;
        }
        name.push_back(upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c);
        upper = false;
    }
    return name;
}

std::string valuesText(const KernelCall& call) {
    std::string text;
    for (const KernelVariable& item : call.variables) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", item.name, item.value);
    }
    return text;
}

/// The call's variables, then the device's.
Expression::Lookup lookupOf(const KernelCall& call, const DeviceArch& arch) {
    return [&call, &arch](std::string_view name) -> std::optional<std::int64_t> {
        for (const KernelVariable& item : call.variables) {
            if (item.name == name) {
                return item.value;
            }
        }
        return deviceVariable(arch, name);
    };
}

struct Candidate {
    const KernelPack* pack = nullptr;
    const KernelVariant* variant = nullptr;
    std::size_t order = 0; ///< of its pack
    bool named = false;    ///< by an override

    std::string text() const { return pack->name() + "/" + variant->name; }
};

[[noreturn]] void failIn(const KernelVariant& variant, std::string_view field, const base::BadInput& error) {
    throw base::BadInput(fmt::format("{}.{}: {}", variant.place, field, error.message()));
}

std::int64_t evaluateIn(const KernelVariant& variant, std::string_view field, const Expression& expression,
                        const Expression::Lookup& lookup) {
    try {
        return expression.evaluate(lookup);
    } catch (const base::BadInput& error) {
        failIn(variant, field, error);
    }
}

/// Why a candidate does not fit; empty when it does.
std::string misfit(const Candidate& candidate, const KernelCall& call, const DeviceArch& arch) {
    const KernelVariant& variant = *candidate.variant;
    if (variant.abi != call.abi) {
        return fmt::format("is for version {} of the parameters, the program has {}", variant.abi, call.abi);
    }
    if (std::none_of(variant.archs.begin(), variant.archs.end(),
                     [&](const std::string& listed) { return archRuns(listed, arch.name); })) {
        return fmt::format("is not for {}", arch.name);
    }
    if (evaluateIn(variant, "when", variant.when, lookupOf(call, arch)) == 0) {
        return fmt::format("when failed ({})", variant.when.text());
    }
    return {};
}

/// Adds the time until its end to `sum`, which the holder of the library's lock may read.
class Stopwatch {
public:
    explicit Stopwatch(double& sum) : sum_(sum), begin_(std::chrono::steady_clock::now()) {}
    ~Stopwatch() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
    Stopwatch(const Stopwatch&) = delete; // one begin, one end
    Stopwatch& operator=(const Stopwatch&) = delete;

private:
    double& sum_;
    std::chrono::steady_clock::time_point begin_;
};

} // namespace

class KernelLibrary::Entry {
public:
    enum class Status : std::uint8_t { Waiting, Compiling, Done, Failed };

    Specialization what;
    KernelUse use;
    DeviceArch arch;
    CompiledKernel compiled;
    std::exception_ptr failure;
    Status status = Status::Waiting; ///< under the library's mutex, as all but `calls`
    bool announced = false;
    bool earlier = false; ///< compiled for a run before this one, which has not asked for it
    std::atomic<std::uint64_t> calls{0};
};

struct KernelLibrary::State {
    State(DeviceArch deviceArch, KernelLibraryOptions given)
        : arch(std::move(deviceArch)), options(std::move(given)), cache(options.cacheFolder, options.cacheLimit) {}

    DeviceArch arch;
    KernelLibraryOptions options;
    CubinCache cache;
    std::vector<KernelPack> packs;
    std::size_t packCount = 0;                                           ///< the built-in one included
    std::map<std::string, std::vector<Candidate>, std::less<>> families; ///< in the order of choice

    mutable std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::unique_ptr<Entry>> entries; ///< in order of first use
    std::unordered_map<std::string, Entry*> bySpecialization;
    std::unordered_map<std::string, Entry*> byCall; ///< family and values; null: nothing fits
    std::deque<Entry*> queue;
    std::size_t prefetched = 0, prefetchDone = 0;
    double waited = 0; ///< seconds
    std::set<std::string> announced;
    bool stopping = false;
    std::vector<std::thread> workers;

    void addPack(const KernelPack& pack);
    void applyOverrides();
    Entry* choose(const KernelCall& call, std::string* why);
    Entry* make(const Candidate& candidate, const KernelCall& call, const std::string& reason);
    void compile(Entry& entry, std::unique_lock<std::mutex>& lock);
    void work();
};

void KernelLibrary::State::addPack(const KernelPack& pack) {
    ++packCount;
    for (const KernelVariant& variant : pack.variants()) {
        families[variant.family].push_back({&pack, &variant, packCount, false});
    }
}

void KernelLibrary::State::applyOverrides() {
    for (const auto& [family, variant] : options.overrides) {
        const auto found = std::find_if(families.begin(), families.end(), [&, wanted = family](const auto& item) {
            return item.first == wanted || opName(item.first) == wanted;
        });
        if (found == families.end()) {
            throw base::BadInput(
                fmt::format("kernel: there is no kernel family '{}'; `vitrine kernels` lists them", family));
        }
        std::vector<Candidate>& candidates = found->second;
        const auto chosen =
            std::find_if(candidates.begin(), candidates.end(), [&, wanted = variant](const Candidate& item) {
                return item.variant->name == wanted || item.text() == wanted;
            });
        if (chosen == candidates.end()) {
            throw base::BadInput(
                fmt::format("kernel: {} has no variant '{}'; `vitrine kernels` lists them", family, variant));
        }
        chosen->named = true;
        std::rotate(candidates.begin(), chosen, chosen + 1);
    }
}

KernelLibrary::Entry* KernelLibrary::State::choose(const KernelCall& call, std::string* why) {
    thread_local std::string key;
    key.assign(call.family);
    for (const KernelVariable& item : call.variables) {
        key.push_back('\0');
        key.append(item.name);
        key.append(reinterpret_cast<const char*>(&item.value), sizeof(item.value));
    }
    if (call.generated != nullptr) {
        key.append(call.generated->digest);
    }
    const auto known = byCall.find(key);
    if (known != byCall.end() && (known->second != nullptr || why == nullptr)) {
        return known->second;
    }
    if (byCall.size() >= kMaxChoices) {
        byCall.clear();
    }
    std::string misfits;
    Entry* entry = nullptr;
    const auto family = families.find(call.family);
    if (family != families.end()) {
        for (const Candidate& candidate : family->second) {
            const std::string problem = misfit(candidate, call, arch);
            if (problem.empty()) {
                const std::string reason = candidate.named              ? "named by --kernel"
                                           : !misfits.empty()           ? "fallback: " + misfits
                                           : family->second.size() == 1 ? "the only variant"
                                                                        : "highest priority that fits";
                entry = make(candidate, call, reason);
                break;
            }
            misfits += fmt::format("{}{}: {}", misfits.empty() ? "" : "; ", candidate.text(), problem);
        }
    }
    byCall.emplace(key, entry);
    if (entry == nullptr && why != nullptr) {
        *why = misfits.empty() ? "no pack has this family" : misfits;
    }
    return entry;
}

KernelLibrary::Entry* KernelLibrary::State::make(const Candidate& candidate, const KernelCall& call,
                                                 const std::string& reason) {
    Specialization what =
        specialize(*candidate.pack, *candidate.variant, lookupOf(call, arch), arch.name, call.generated);
    const std::string specialization = what.text();
    const std::string key =
        fmt::format("{}/{} {} {}", call.family, candidate.text(), specialization, what.generated.digest);
    const auto known = bySpecialization.find(key);
    if (known != bySpecialization.end()) {
        return known->second;
    }
    auto entry = std::make_unique<Entry>();
    entry->what = std::move(what);
    entry->arch = arch;
    entry->use.family = candidate.variant->family;
    entry->use.variant = candidate.variant->name;
    entry->use.pack = candidate.pack->name();
    entry->use.arch = arch.name;
    entry->use.reason = reason;
    entry->use.specialization = specialization;
    bySpecialization.emplace(key, entry.get());
    return entries.emplace_back(std::move(entry)).get();
}

/// Enters and leaves with the lock held; compiles without it.
void KernelLibrary::State::compile(Entry& entry, std::unique_lock<std::mutex>& lock) {
    entry.status = Entry::Status::Compiling;
    lock.unlock();
    CompiledVariant result;
    std::exception_ptr failure;
    try {
        result = compileVariant(entry.what, cache);
    } catch (...) {
        failure = std::current_exception();
    }
    lock.lock();
    entry.failure = failure;
    entry.use.origin = result.origin;
    entry.use.compileSeconds = result.cached ? 0 : result.kernel.seconds;
    entry.use.kernels = result.kernel.resources;
    entry.compiled = std::move(result.kernel);
    entry.status = failure ? Entry::Status::Failed : Entry::Status::Done;
    changed.notify_all();
}

void KernelLibrary::State::work() {
    std::unique_lock lock(mutex);
    for (;;) {
        changed.wait(lock, [&] { return stopping || !queue.empty(); });
        if (stopping) {
            return;
        }
        Entry* const entry = queue.front();
        queue.pop_front();
        if (entry->status == Entry::Status::Waiting) {
            compile(*entry, lock);
        }
        ++prefetchDone;
        changed.notify_all();
    }
}

KernelLibrary::KernelLibrary(DeviceArch arch, KernelLibraryOptions options)
    : state_(std::make_unique<State>(std::move(arch), std::move(options))) {
    State& state = *state_;
    state.packs.reserve(state.options.packs.size()); // candidates hold addresses
    for (const std::string& folder : state.options.packs) {
        const KernelPack& pack = state.packs.emplace_back(KernelPack::load(folder));
        base::logInfo(fmt::format("kernel pack {} from {}: {} variants", pack.name(), folder, pack.variants().size()));
        state.addPack(pack);
    }
    state.addPack(KernelPack::builtin());
    for (auto& [family, candidates] : state.families) {
        // Packs keep their order, and inside a pack the higher priority goes first.
        std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
            return a.order != b.order ? a.order < b.order : a.variant->priority > b.variant->priority;
        });
    }
    state.applyOverrides();
}

KernelLibrary::~KernelLibrary() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stopping = true;
    }
    state_->changed.notify_all();
    for (std::thread& worker : state_->workers) {
        worker.join();
    }
}

bool KernelLibrary::named(std::string_view family) const {
    const auto found = state_->families.find(family);
    return found != state_->families.end() && !found->second.empty() && found->second.front().named;
}

bool KernelLibrary::fits(const KernelCall& call) {
    const std::lock_guard lock(state_->mutex);
    return state_->choose(call, nullptr) != nullptr;
}

const KernelLibrary::Entry& KernelLibrary::entry(const KernelCall& call) {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    std::string why;
    Entry* const entry = state.choose(call, &why);
    if (entry == nullptr) {
        throw base::Unsupported(fmt::format("kernel {}: no variant fits ({} on {}): {}", call.family, valuesText(call),
                                            state.arch.name, why));
    }
    if (entry->status == Entry::Status::Waiting || entry->status == Entry::Status::Compiling) {
        const Stopwatch watch(state.waited);
        if (entry->status == Entry::Status::Waiting) {
            state.compile(*entry, lock);
        }
        state.changed.wait(
            lock, [&] { return entry->status == Entry::Status::Done || entry->status == Entry::Status::Failed; });
    }
    if (entry->failure) {
        std::rethrow_exception(entry->failure);
    }
    entry->calls.fetch_add(1, std::memory_order_relaxed);
    if (!entry->announced) {
        entry->announced = true;
        entry->earlier = false;
        const KernelUse& use = entry->use;
        // Once for all values that a family is specialised for: those are for -vv.
        const bool compiled = !entry->compiled.resources.empty() && use.compileSeconds > 0;
        const std::string where = fmt::format("{} {} {}", use.family, use.pack, compiled ? "compiled" : use.origin);
        const bool first = state.announced.insert(where).second;
        lock.unlock();
        if (first) {
            base::logInfo(
                fmt::format("using {} from pack {} ({}, {})", opName(use.family), use.pack, use.arch, use.origin));
        }
        base::logDebug(fmt::format("kernel {}/{} {}: {}; {}", use.family, use.variant, use.specialization, use.reason,
                                   use.origin));
    }
    return *entry;
}

void KernelLibrary::prefetch(const KernelCall& call) {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    Entry* const entry = state.choose(call, nullptr);
    if (entry != nullptr) {
        entry->earlier = false;
    }
    if (entry == nullptr || entry->status != Entry::Status::Waiting ||
        std::find(state.queue.begin(), state.queue.end(), entry) != state.queue.end()) {
        return;
    }
    state.queue.push_back(entry);
    ++state.prefetched;
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const int limit = state.options.threads > 0 ? state.options.threads : cores;
    if (static_cast<int>(state.workers.size()) < limit) {
        state.workers.emplace_back([&state] { state.work(); });
    }
    state.changed.notify_all();
}

void KernelLibrary::waitForPrefetch(base::ProgressSink* progress, const base::StopToken& stop) {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    const Stopwatch watch(state.waited);
    std::size_t reported = 0;
    while (state.prefetchDone < state.prefetched) {
        state.changed.wait_for(lock, std::chrono::milliseconds(50));
        base::throwIfStopped(stop);
        if (progress != nullptr && state.prefetchDone > reported) {
            reported = state.prefetchDone;
            const std::size_t total = state.prefetched;
            lock.unlock();
            progress->progress("Compiling kernels", reported, total);
            lock.lock();
        }
    }
    if (progress != nullptr && reported < state.prefetched) {
        const std::size_t total = state.prefetched;
        lock.unlock();
        progress->progress("Compiling kernels", total, total);
    }
}

std::vector<KernelLaunch> KernelLibrary::launches(const Entry& entry, const KernelCall& call) {
    const KernelVariant& variant = *entry.what.variant;
    const Expression::Lookup lookup = lookupOf(call, entry.arch);
    std::vector<KernelLaunch> out;
    out.reserve(variant.launches.size());
    for (const KernelLaunchRule& rule : variant.launches) {
        KernelLaunch launch;
        launch.entry = rule.entry;
        const auto fill = [&](std::array<unsigned, 3>& to, const std::array<Expression, 3>& from,
                              std::string_view field) {
            for (std::size_t i = 0; i < 3; ++i) {
                const std::int64_t value = evaluateIn(variant, field, from[i], lookup);
                if (value < 0 || value > 0x7FFFFFFF) {
                    throw base::BadInput(fmt::format("{}.{}: {} is {}; it must lie between 0 and 2147483647",
                                                     variant.place, field, from[i].text(), value));
                }
                to[i] = static_cast<unsigned>(value);
            }
        };
        fill(launch.grid, rule.grid, "grid");
        if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) {
            continue;
        }
        fill(launch.block, rule.block, "block");
        fill(launch.cluster, rule.cluster, "cluster");
        const std::int64_t shared = evaluateIn(variant, "shared", rule.shared, lookup);
        if (shared < 0 || shared > entry.arch.sharedPerBlock) {
            throw base::BadInput(fmt::format("{}.shared: {} bytes; the device has {} for a block", variant.place,
                                             shared, entry.arch.sharedPerBlock));
        }
        launch.sharedBytes = static_cast<unsigned>(shared);
        launch.dependent = rule.dependent && call.dependent;
        out.push_back(std::move(launch));
    }
    return out;
}

const std::vector<std::uint8_t>& KernelLibrary::cubin(const Entry& entry) {
    return entry.compiled.image;
}

const KernelUse& KernelLibrary::use(const Entry& entry) {
    return entry.use;
}

bool KernelLibrary::builtin(const Entry& entry) {
    return entry.what.pack->isBuiltin();
}

std::vector<KernelUse> KernelLibrary::uses() const {
    const std::lock_guard lock(state_->mutex);
    std::vector<KernelUse> out;
    for (const std::unique_ptr<Entry>& entry : state_->entries) {
        if (entry->status == Entry::Status::Done && !entry->earlier) {
            out.push_back(entry->use);
            out.back().calls = entry->calls.load(std::memory_order_relaxed);
        }
    }
    return out;
}

void KernelLibrary::beginRun() {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    state.waited = 0;
    state.announced.clear();
    for (const std::unique_ptr<Entry>& entry : state.entries) {
        entry->calls = 0;
        entry->announced = false;
        if (entry->status == Entry::Status::Done) {
            entry->earlier = true;
            entry->use.origin = "kept from the run before";
            entry->use.compileSeconds = 0;
        } else if (entry->status == Entry::Status::Failed) {
            // What failed may have been mended: a compiler that was missing, a full disk.
            entry->status = Entry::Status::Waiting;
            entry->failure = nullptr;
        }
    }
}

double KernelLibrary::waitedSeconds() const {
    const std::lock_guard lock(state_->mutex);
    return state_->waited;
}

std::vector<KernelLibrary::Listing> KernelLibrary::list() const {
    const State& state = *state_;
    std::vector<Listing> out;
    for (const auto& [family, candidates] : state.families) {
        // The built-in variants, which every family of the program has, give the version that it passes.
        const auto shipped =
            std::find_if(candidates.begin(), candidates.end(), [](const auto& item) { return item.pack->isBuiltin(); });
        const std::size_t begin = out.size();
        for (const auto& item : candidates) {
            const KernelVariant& variant = *item.variant;
            const bool known = shipped != candidates.end() && shipped->variant->abi == variant.abi;
            const bool runs = known && std::any_of(variant.archs.begin(), variant.archs.end(), [&](const auto& listed) {
                                  return archRuns(listed, state.arch.name);
                              });
            out.push_back({item.pack, &variant, runs});
        }
        int examples = 0;
        for (const auto& item : candidates) {
            for (const auto& example : item.variant->examples) {
                const Expression::Lookup lookup = [&](std::string_view name) -> std::optional<std::int64_t> {
                    const auto found = example.find(std::string(name));
                    return found != example.end() ? std::optional(found->second) : deviceVariable(state.arch, name);
                };
                const auto fits = [&](const Listing& candidate) {
                    try {
                        return candidate.runs && candidate.variant->when.evaluate(lookup) != 0;
                    } catch (const base::BadInput&) {
                        return false; // the example of another variant lacks a name that this one's condition needs
                    }
                };
                const auto taken = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), fits);
                if (taken != out.end()) {
                    ++taken->chosen;
                    ++examples;
                }
            }
        }
        for (std::size_t i = begin; i < out.size(); ++i) {
            out[i].examples = examples;
        }
    }
    return out;
}

const DeviceArch& KernelLibrary::arch() const {
    return state_->arch;
}

} // namespace vitrine::kernels
