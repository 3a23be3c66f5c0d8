// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/data_set.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_rows.h"
#include "engine/training/data/chat_mask.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr int kMostMaskCells = 256;
constexpr auto kCountEvery = std::chrono::milliseconds(100);

/// Keeps how much of the file was read.
class BytesRead final : public base::ProgressSink {
public:
    void progress(std::string_view, std::uint64_t done, std::uint64_t) override { done_ = done; }
    std::uint64_t done() const { return done_; }

private:
    std::uint64_t done_ = 0;
};

std::uint64_t sizeOfFile(const std::string& path) {
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    return unknown ? 0 : size;
}

DataCounts countsOf(const engine::DataRows& rows, std::uint64_t done, std::uint64_t all) {
    DataCounts out{rows.rows(),
                   static_cast<std::int64_t>(rows.used().size()),
                   rows.count(engine::LeftOutReason::NoAnswer),
                   rows.count(engine::LeftOutReason::Duplicate),
                   rows.count(engine::LeftOutReason::Unreadable),
                   0};
    if (done > 0 && all > 0) {
        out.expectedRows = static_cast<std::int64_t>(static_cast<double>(out.rows) * static_cast<double>(all) /
                                                     static_cast<double>(done));
    }
    return out;
}

std::vector<std::int64_t> windowsOf(const engine::ModelSource& source) {
    std::set<std::int64_t> windows;
    for (const engine::LayerConfig& layer : source.config.layers) {
        windows.insert(layer.window);
    }
    return {windows.begin(), windows.end()};
}

MaskPicture maskPicture(const engine::PreparedData& data, std::int64_t sequence, std::int64_t window) {
    const kernels::BlockMask mask = engine::sequenceBlocks(data, static_cast<std::size_t>(sequence), window);
    MaskPicture out;
    out.window = window;
    out.block = mask.shape.queryBlock;
    const auto blocks = static_cast<int>((data.length + out.block - 1) / out.block);
    out.blocksOfCell = (blocks + kMostMaskCells - 1) / kMostMaskCells;
    out.side = (blocks + out.blocksOfCell - 1) / out.blocksOfCell;
    out.cells.assign(static_cast<std::size_t>(out.side) * static_cast<std::size_t>(out.side), MaskPicture::Empty);
    out.full = mask.full;
    out.partial = mask.partial;
    out.empty = static_cast<std::int64_t>(blocks) * blocks - out.full - out.partial;
    out.causal = static_cast<std::int64_t>(blocks) * (blocks + 1) / 2;
    for (std::int64_t row = 0; row < mask.shape.queryBlocks(); ++row) {
        for (const kernels::BlockRun& run : mask.row(0, 0, row)) {
            for (int column = run.first; column < run.first + run.count; ++column) {
                std::uint8_t& cell =
                    out.cells[static_cast<std::size_t>(row / out.blocksOfCell) * static_cast<std::size_t>(out.side) +
                              static_cast<std::size_t>(column / out.blocksOfCell)];
                const std::uint8_t now = run.full ? MaskPicture::Full : MaskPicture::Partial;
                cell = cell == MaskPicture::Empty ? now : std::min(cell, now);
            }
        }
    }
    return out;
}

/// Rows stand by line.
engine::RowTable::const_iterator rowOfLine(const engine::RowTable& rows, std::int64_t line) {
    const auto found =
        std::lower_bound(rows.begin(), rows.end(), line,
                         [](const engine::RowFacts& row, std::int64_t wanted) { return row.line < wanted; });
    return found != rows.end() && found->line == line ? found : rows.end();
}

const engine::RowFacts* factsOfLine(const engine::RowTable& rows, std::int64_t line) {
    const auto found = rowOfLine(rows, line);
    return found == rows.end() ? nullptr : &*found;
}

QString shortText(std::string_view text, qsizetype most) {
    return textOf(text.substr(0, static_cast<std::size_t>(most) * 4)).left(most);
}

/// Of rows that were left out only the number is known, so that the file is read up to it.
QString rowByNumber(const std::string& path, std::int64_t line, qsizetype most) {
    struct Found {};
    QString out;
    try {
        base::forJsonRows(path, [&](const base::JsonRow& row) {
            if (row.number == line) {
                out = shortText(row.text, most);
                throw Found{};
            }
        });
    } catch (const Found&) { // the rest of the file is not wanted
    }
    return out;
}

void addTurns(const engine::PreparedData& data, const engine::TrainingRow& row, RowTokens& out) {
    if (data.format == nullptr) {
        return;
    }
    for (const engine::ChatTurn& turn : engine::chatTurns(*data.format, row.tokens)) {
        out.cells[static_cast<std::size_t>(turn.begin)].startsMessage = true;
        const auto begin = out.kinds.begin() + turn.begin, end = out.kinds.begin() + turn.end;
        const auto trained = std::count(begin, end, TokenKind::Trained);
        out.turns.push_back({textOf(turn.role), turn.begin, turn.end, trained});
        out.answers += trained > 0 ? 1 : 0;
    }
}

} // namespace

DataSetPtr readDataSet(const engine::Experiment& experiment, const base::StopToken& stop,
                       const std::function<void(const DataCounts&)>& counted, const std::function<bool()>& enough) {
    const auto begin = std::chrono::steady_clock::now();
    auto set = std::make_shared<DataSet>();
    BytesRead bytes;
    engine::WorkloadSinks sinks;
    sinks.progress = &bytes;
    nlohmann::json metrics;
    const engine::Run run{experiment, sinks, stop, metrics};
    set->fileBytes = sizeOfFile(experiment.text("data"));
    const engine::ModelSource source = engine::openSource(run);
    set->windows = windowsOf(source);
    auto told = begin;
    engine::PrepareWatch watch;
    watch.countTemplate = true;
    watch.enough = enough;
    watch.read = [&](const engine::DataRows& rows) {
        const auto now = std::chrono::steady_clock::now();
        if (counted && now - told >= kCountEvery) {
            told = now;
            counted(countsOf(rows, bytes.done(), set->fileBytes));
        }
    };
    set->data = engine::prepareData(run, source, watch);
    const auto sequences = static_cast<std::int64_t>(set->data.packed.size());
    set->summary = engine::summarizeData(set->data, engine::sequencesOfStep(experiment, sequences));
    set->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return set;
}

SequencePicture sequencePicture(const DataSet& set, std::int64_t index) {
    SequencePicture out;
    out.index = index;
    try {
        out.layout = engine::sequenceLayout(set.data, static_cast<std::size_t>(index));
    } catch (const base::Error& error) {
        out.problem = textOf(error.message());
        return out;
    }
    for (const std::int64_t window : set.windows) {
        out.masks.push_back(maskPicture(set.data, index, window));
    }
    return out;
}

RowTokens rowTokens(const DataSet& set, const engine::PlacedRow& placed, std::int64_t sequence) {
    RowTokens out;
    engine::TrainingRow row;
    try {
        row = set.data.row(placed.row);
    } catch (const base::Error& error) {
        out.problem = textOf(error.message());
        return out;
    }
    const engine::KeptTokens kept = engine::keptTokens(row, set.data.length);
    out.row = placed.row;
    out.line = row.line;
    out.sequence = sequence;
    out.place = placed.begin;
    out.keptBegin = kept.begin;
    out.keptEnd = kept.begin + kept.count;
    out.ids = row.tokens;
    for (std::int64_t i = 0; i < out.tokens(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool lost = i < out.keptBegin || i >= out.keptEnd;
        const bool trained = i > out.keptBegin && row.trained[at] != 0;
        out.kinds.push_back(lost ? TokenKind::Lost : trained ? TokenKind::Trained : TokenKind::NotTrained);
        out.trained += !lost && trained ? 1 : 0;
        const engine::Tokenizer* tokenizer = set.data.tokenizer.get();
        out.special.push_back(tokenizer != nullptr && tokenizer->isSpecial(row.tokens[at]) ? 1 : 0);
        out.cells.push_back(
            {tokenizer != nullptr ? tokenizer->bytesOf(row.tokens[at]) : std::to_string(row.tokens[at]) + " ", false});
    }
    addTurns(set.data, row, out);
    return out;
}

QString rawLine(const DataSet& set, std::int64_t line, qsizetype most) {
    const engine::RowFacts* facts = factsOfLine(set.data.training, line);
    facts = facts != nullptr || set.data.heldApart ? facts : factsOfLine(set.data.held, line);
    try {
        if (facts != nullptr && !engine::isTensorFile(set.data.file)) {
            return shortText(base::readJsonRow(set.data.file, facts->offset), most);
        }
        return rowByNumber(set.data.file, line, most);
    } catch (const base::Error&) {
        return {};
    }
}

std::pair<std::int64_t, std::int64_t> placeOfLine(const DataSet& set, std::int64_t line) {
    const engine::RowTable& rows = set.data.training;
    const auto found = rowOfLine(rows, line);
    if (found == rows.end()) {
        return {-1, -1};
    }
    const auto row = static_cast<std::int32_t>(found - rows.begin());
    const std::size_t sequence = set.data.packed.sequenceOf(row);
    if (sequence == set.data.packed.size()) {
        return {-1, -1};
    }
    const auto members = set.data.packed.sequence(sequence);
    return {static_cast<std::int64_t>(sequence), std::ranges::find(members, row) - members.begin()};
}

} // namespace vitrine::ui
