// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The table of rows of the Data page, and the words of its filter.

#include <QObject>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/models/finetune/data_text.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kMostTableRows = 10'000; ///< a table of more is slow to make, and nobody reads it

FlatCell numberCell(std::int64_t value) {
    return FlatCell(countText(value), static_cast<qlonglong>(value));
}

/// Adds rows up to the limit and counts the rest.
class RowTableMaker {
public:
    explicit RowTableMaker(const engine::DataSummary& summary) : place_(placeWord(summary, true)) {
        tree_->columns = {{placeWord(summary), true},          {QObject::tr("What"), false},
                          {QObject::tr("Tokens"), true},        {QObject::tr("Lost"), true},
                          {QObject::tr("Trained, lost"), true}, {QObject::tr("Why"), false}};
    }

    void addCut(const engine::CutRow& row) {
        if (FlatNode* node = add(row.line)) {
            node->cells = {numberCell(row.line),
                           FlatCell(row.keepsEnd ? QObject::tr("cut at its beginning") : QObject::tr("cut at its end")),
                           numberCell(row.tokens),
                           numberCell(row.lost),
                           numberCell(row.lostTrained),
                           FlatCell(row.keptTrained == 0 ? QObject::tr("keeps no answer") : QString())};
        }
    }

    void addLeftOut(const engine::LeftOutRow& row) {
        if (FlatNode* node = add(row.line)) {
            const QString why = row.firstLine > 0
                                    ? QObject::tr("the same tokens as %1 %2").arg(place_, countText(row.firstLine))
                                    : textOf(row.why);
            node->cells = {numberCell(row.line),    FlatCell(QObject::tr("left out: %1").arg(leftOutName(row.reason))),
                           FlatCell(unknownText()), FlatCell(unknownText()),
                           FlatCell(unknownText()), FlatCell(why)};
        }
    }

    void addUsed(const engine::RowFacts& row, std::int64_t length, const QString& what) {
        if (FlatNode* node = add(row.line)) {
            node->cells = {numberCell(row.line),
                           FlatCell(what),
                           numberCell(row.tokens),
                           numberCell(row.tokens - row.kept(length)),
                           numberCell(std::int64_t{row.trainedWhole} - row.trained),
                           FlatCell(row.trained == 0 ? QObject::tr("keeps no answer") : QString())};
        }
    }

    void skip(std::int64_t count) { more_ += count; }

    FlatTreePtr finish() {
        if (more_ > 0) {
            FlatNode& node = tree_->nodes.emplace_back();
            node.last = true;
            node.cells = {FlatCell(QString()), FlatCell(QObject::tr("%1 more").arg(countText(more_))),
                          FlatCell(QString()), FlatCell(QString()),
                          FlatCell(QString()), FlatCell(QObject::tr("not listed"))};
        }
        return tree_;
    }

private:
    FlatNode* add(std::int64_t line) {
        if (tree_->nodes.size() >= kMostTableRows) {
            ++more_;
            return nullptr;
        }
        FlatNode& node = tree_->nodes.emplace_back();
        node.key = static_cast<quint64>(line);
        return &node;
    }

    QString place_; ///< what a number of a row counts, "line"
    std::shared_ptr<FlatTree> tree_ = std::make_shared<FlatTree>();
    std::int64_t more_ = 0;
};

void addCutRows(const engine::DataSummary& s, RowTableMaker& table) {
    std::ranges::for_each(s.cut, [&](const engine::CutRow& row) { table.addCut(row); });
    table.skip(s.cutRows - static_cast<std::int64_t>(s.cut.size()));
}

void addRowsOfLength(const DataSet& set, const RowFilter& filter, RowTableMaker& table) {
    const auto addAll = [&](const engine::RowTable& rows, std::int64_t length, const QString& what) {
        for (const engine::RowFacts& row : rows) {
            if (row.tokens >= filter.from && row.tokens < filter.to) {
                table.addUsed(row, length, what);
            }
        }
    };
    addAll(set.data.training, set.data.length, QObject::tr("trains"));
    if (!set.data.heldApart) {
        addAll(set.data.held, set.data.heldLength, QObject::tr("validates"));
    }
}

} // namespace

QString filterText(const RowFilter& filter) {
    return filter.leftOut  ? leftOutName(*filter.leftOut)
           : filter.cut    ? QObject::tr("cut")
           : filter.to > 0 ? QObject::tr("%1 to %2 tokens").arg(countText(filter.from), countText(filter.to - 1))
                           : QString();
}

FlatTreePtr rowsTable(const DataSet& set, const RowFilter& filter) {
    const engine::DataSummary& s = set.summary;
    RowTableMaker table(s);
    if (filter.to > 0) {
        addRowsOfLength(set, filter, table);
        return table.finish();
    }
    if (filter.cut || !filter.any()) {
        addCutRows(s, table);
    }
    if (filter.leftOut || !filter.any()) {
        std::int64_t listed = 0;
        for (const engine::LeftOutRow& row : s.leftOut) {
            if (!filter.leftOut || row.reason == *filter.leftOut) {
                table.addLeftOut(row);
                ++listed;
            }
        }
        table.skip((filter.leftOut ? leftOutCount(s, *filter.leftOut) : s.leftOutRows()) - listed);
    }
    return table.finish();
}

} // namespace vitrine::ui
