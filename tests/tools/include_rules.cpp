// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/tools/include_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <vector>

#include "tests/tools/tree.h"

namespace vitrine::tools {

namespace {

struct Folder {
    std::string_view name;
    int rank;
};

constexpr std::array<Folder, 12> kFolders = {{{"base", 0},
                                              {"kernels", 1},
                                              {"engine", 2},
                                              {"profiler", 2},
                                              {"sessions", 2},
                                              {"ui/models", 3},
                                              {"ui/widgets", 4},
                                              {"ui/views", 5},
                                              {"app/runner", 6},
                                              {"app/serve", 7},
                                              {"app/cli", 8},
                                              {"app/gui", 8}}};

/// Folders outside the ranks: their sources may include everything, and no ranked folder may include them.
constexpr std::array<std::string_view, 4> kUnranked = {"cmake", "resources", "tests", "tools"};

/// Inner folders in their order: each uses only those before it, and each source lies in one of them. An empty name
/// stands for the files that are in no inner folder.
struct InnerOrder {
    std::string_view folder;
    std::vector<std::string_view> inner;
};

const std::array<InnerOrder, 13>& innerOrders() {
    static const std::array<InnerOrder, 13> kOrders = {{
        {"kernels", {"core", "memory", "cuda", "context", "cpu", "formats", "program", "ops"}},
        {"kernels/ops",
         {"common", "rowwise", "linear", "attention", "experts", "sampling", "fused", "loss", "optimizer", "comm", ""}},
        {"engine",
         {"quant", "checkpoint", "tokenizer", "language", "chat", "attention", "cache", "parallel", "model",
          "generation", "training", "rl", "planning", "workload"}},
        {"engine/rl", {"problems", "rewards", "policy", "rollout"}},
        {"engine/language", {"python", "values", "evaluate", "builtins", ""}},
        {"engine/training", {"data", "parameters", "adapters", "quantized", "passes", "files", "run"}},
        {"engine/workload",
         {"experiment", "common", "roofline", "load", "convert", "precision", "generate", "attention", "batch",
          "finetune", "rl", "score", "serve", "bench", "planner", "sweep"}},
        {"profiler", {"record", "timeline", "gpu", "analysis", "import", "export"}},
        {"ui/models",
         {"common", "session", "rl", "run", "planner", "memory", "kernels", "precision", "load", "batching", "kv_cache",
          "mask_lab", "finetune", "queue", "compare"}},
        {"ui/widgets", {"base", "forms", "plots", "block_map", "timeline"}},
        {"ui/views",
         {"common", "memory", "kernels", "kv_cache", "load", "batching", "mask_lab", "run", "finetune", "rl",
          "sessions", "compare", "planner", "precision", "queue", "shell"}},
        {"app/runner", {"machine", "recording", "host", "sweep", "rates", "runs", "reports"}},
        {"app/cli", {"common", "commands", ""}},
    }};
    return kOrders;
}

/// Third-party headers: who may include what starts like this, and only in files that end like that.
struct ThirdParty {
    std::string_view header; ///< regular expression for the whole name
    std::string_view files;  ///< regular expression for the whole path
};

constexpr std::array<ThirdParty, 16> kThirdParty = {{
    {"fmt/.*", ".*\\.cpp"},
    {"spdlog/.*", "base/.*\\.cpp"},
    {"nlohmann/json\\.hpp", ".*\\.cpp"},
    {"nlohmann/json_fwd\\.hpp", ".*"},
    {"zstd\\.h", "base/codec\\.cpp"},
    {"(cuda|nvrtc|cublasLt|library_types)\\.h", "kernels/.*"},
    {"cblas\\.h", "kernels/.*_cpu\\.cpp"},
    {"utf8proc\\.h", "engine/tokenizer/.*"},
    {"pcre2\\.h", "engine/(tokenizer/.*|quant/module_pattern\\.cpp|rl/problems/regex_checker\\.cpp)"},
    {"nccl\\.h", "engine/parallel/.*"},
    {"(cupti.*|nvml|cuda|generated_cuda_meta)\\.h", "profiler/gpu/.*"},
    {"(zlib\\.h|google/protobuf/.*)", "profiler/(import|export)/.*"},
    {"sqlite3\\.h", "(sessions|profiler/import|profiler/export)/.*"},
    {"CLI/.*", "app/cli/.*"},
    {"Qt?(Chart|LineSeries|AreaSeries|BarSeries|BarSet|ScatterSeries|ValueAxis|Legend).*|QtCharts.*", "ui/widgets/.*"},
    {"Q[A-Z]?.*", "(ui/widgets|ui/views|app/gui)/.*"},
}};

/// The headers of Qt Core that ui/models may use. QColor, QIcon and the like are of Qt Gui and stay out.
constexpr std::string_view kQtCore =
    "QtCore/"
    ".*|QtGlobal|QtMath|QtConcurrent|Q(AbstractItemModel|AbstractListModel|AbstractProxyModel|AbstractTableModel|"
    "ByteArray|Char|CollatorSortKey|Collator|CoreApplication|DateTime|Date|Debug|Dir|ElapsedTimer|Event|File|FileInfo|"
    "FileSystemWatcher|Future|FutureWatcher|Hash|IdentityProxyModel|IODevice|ItemSelectionModel|JsonArray|JsonDocument|"
    "JsonObject|JsonValue|Line|LineF|List|Locale|LockFile|Map|Margins|MetaEnum|MetaObject|MetaType|MimeData|"
    "ModelIndex|Mutex|Object|PersistentModelIndex|Point|PointF|Pointer|Process|Queue|Rect|RectF|RegularExpression|"
    "Runnable|SaveFile|ScopedPointer|SemaphoreReleaser|Set|Settings|SharedPointer|Signal[A-Za-z]*|Size|SizeF|"
    "SortFilterProxyModel|StandardPaths|String|StringBuilder|StringList|StringListModel|StringView|Thread|ThreadPool|"
    "Time|Timer|TimerEvent|Translator|Url|Uuid|Variant|VariantMap|Vector)";

/// The standard library: names without a dot; C and system headers that every Linux has.
constexpr std::string_view kSystem =
    "[a-z_0-9]+|(sys|linux|netinet|arpa)/.*|(assert|cpuid|cxxabi|dirent|dlfcn|errno|execinfo|fcntl|immintrin|limits|"
    "link|netdb|poll|pthread|sched|semaphore|signal|spawn|stdint|stddef|string|termios|time|unistd|x86intrin)\\.h";

bool matches(std::string_view text, std::string_view pattern) {
    return std::regex_match(text.begin(), text.end(), std::regex(pattern.begin(), pattern.end()));
}

bool isIn(std::string_view path, std::string_view folder) {
    return path.starts_with(folder) && path.substr(folder.size()).starts_with('/');
}

const Folder* folderOf(std::string_view path) {
    const auto found = std::ranges::find_if(kFolders, [&](const Folder& folder) { return isIn(path, folder.name); });
    return found == kFolders.end() ? nullptr : &*found;
}

/// Place of FOLDER/INNER/... in the order of its inner folders; none outside of them.
std::optional<std::size_t> innerPlace(const InnerOrder& order, std::string_view path) {
    const std::string_view rest = path.substr(order.folder.size() + 1);
    for (std::size_t i = 0; i < order.inner.size(); ++i) {
        if (order.inner[i].empty() ? rest.find('/') == std::string_view::npos : isIn(rest, order.inner[i])) {
            return i;
        }
    }
    return std::nullopt;
}

bool isDevice(std::string_view path) {
    return path.starts_with("kernels/device/") || path.starts_with("resources/kernel-packs/");
}

/// "kernels/core", or "files of engine/language" for those that are in none of its folders.
std::string innerName(const InnerOrder& order, std::size_t place) {
    const std::string folder(order.folder);
    return order.inner[place].empty() ? "files of " + folder : folder + "/" + std::string(order.inner[place]);
}

/// Why a file may not include another one of the same folder; empty when it may.
std::string innerProblem(std::string_view path, std::string_view target) {
    for (const InnerOrder& order : innerOrders()) {
        if (!isIn(path, order.folder) || !isIn(target, order.folder)) {
            continue;
        }
        const std::optional<std::size_t> from = innerPlace(order, path);
        const std::optional<std::size_t> to = innerPlace(order, target);
        if (!to) {
            return "is in no folder of " + std::string(order.folder) + " that has a place in its order";
        }
        // Of a file without a place includeProblems() has told that already.
        if (from && *to > *from) {
            return innerName(order, *from) + " comes before " + innerName(order, *to);
        }
    }
    return {};
}

/// Why no source may lie at `path`; empty when it may.
std::string placeProblem(std::string_view path) {
    if (folderOf(path) == nullptr) {
        const bool unranked =
            std::ranges::any_of(kUnranked, [&](std::string_view folder) { return isIn(path, folder); });
        return unranked ? "" : "is in no folder that tests/tools/include_rules.cpp knows";
    }
    for (const InnerOrder& order : innerOrders()) {
        if (isIn(path, order.folder) && !isDevice(path) && !innerPlace(order, path)) {
            return "is in no folder of " + std::string(order.folder) +
                   " that has a place in its order; tests/tools/include_rules.cpp lists them";
        }
    }
    return {};
}

/// Why `folder`'s file at `path` may not include `target` of this tree; empty when it may.
std::string edgeProblem(std::string_view path, const Folder& folder, const std::string& target) {
    const Folder* const other = folderOf(target);
    if (other == nullptr) {
        return "is in no folder that others may include; write the path from the root of the tree";
    }
    if (isDevice(path) && !isDevice(target)) {
        return "kernels/device includes only kernels/device: it is compiled at run time";
    }
    if (other->name != folder.name && other->rank >= folder.rank) {
        return std::string(folder.name) + " may not include " + std::string(other->name) +
               ": includes go down the ranks";
    }
    if (other->name == folder.name && !isDevice(path) && !target.starts_with("kernels/device/")) {
        return innerProblem(path, target);
    }
    return {};
}

std::string thirdPartyProblem(std::string_view path, std::string_view header) {
    if (isDevice(path)) {
        return "kernels/device uses no headers but its own";
    }
    if (matches(header, kSystem)) {
        return {};
    }
    if (path.starts_with("ui/models/") && matches(header, kQtCore)) {
        return {};
    }
    bool known = false;
    for (const ThirdParty& rule : kThirdParty) {
        if (!matches(header, rule.header)) {
            continue;
        }
        if (matches(path, rule.files)) {
            // The charts' rule stands before the one for all of Qt and must hold by itself.
            return {};
        }
        known = true;
        if (rule.header.starts_with("Qt?(Chart")) {
            break;
        }
    }
    return known ? "this folder (or this kind of file) may not use that library" : "no folder may use that header";
}

/// "kernels/ops/rowwise/rope_cpu.cpp" belongs to "kernels/ops/rope_cpu.h", if there is one.
std::string ownHeader(std::string_view path) {
    return std::string(path.substr(0, path.size() - 4)) + ".h";
}

} // namespace

std::vector<std::string> includeProblems(std::string_view path, std::string_view text,
                                         const std::function<bool(const std::string&)>& exists) {
    static const std::regex kInclude(R"rx(\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)"|(\S+)).*)rx");
    const Folder* const folder = folderOf(path);
    std::vector<std::string> problems;
    if (const std::string why = placeProblem(path); !why.empty()) {
        problems.push_back(std::string(path) + ": " + why);
    }
    int lineNumber = 0;
    bool isFirst = true;
    for (const std::string_view line : splitLines(text)) {
        ++lineNumber;
        std::match_results<std::string_view::const_iterator> found;
        if (line.find("include") == std::string_view::npos ||
            !std::regex_match(line.begin(), line.end(), found, kInclude)) {
            continue;
        }
        const std::string system = found[1].str();
        // The run-time compiler knows device files by their path from kernels/.
        const std::string written = found[2].str();
        const std::string target = isDevice(path) && written.starts_with("device/") ? "kernels/" + written : written;
        const auto report = [&](const std::string& what, const std::string& why) {
            std::string& problem = problems.emplace_back(path);
            problem.append(":").append(std::to_string(lineNumber)).append(": ").append(what).append(": ").append(why);
        };
        if (found[3].matched) {
            report(found[3].str(), "an include must name its file");
        } else if (!system.empty()) {
            if (const std::string why = folder == nullptr ? "" : thirdPartyProblem(path, system); !why.empty()) {
                report("<" + system + ">", why);
            }
        } else if (!target.ends_with(".moc")) {
            if (const std::string why = folder == nullptr ? "" : edgeProblem(path, *folder, target); !why.empty()) {
                report(target, why);
            } else if (!exists(target)) {
                report(target, "there is no such file in the tree");
            }
        }
        if (isFirst && path.ends_with(".cpp") && exists(ownHeader(path)) && target != ownHeader(path)) {
            report(target.empty() ? system : target, "the file's own header comes first");
        }
        isFirst = false;
    }
    return problems;
}

} // namespace vitrine::tools
