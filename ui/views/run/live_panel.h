// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Numbers of the run that goes on, or of the saved one that is shown: speed, tokens, a small memory stack, the decode
// roofline, last runs. Below each other at the side of a window, beside each other below it.

#include <QImage>
#include <QWidget>
#include <array>

#include "profiler/analysis/roofline_summary.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/base/controls.h"

class QBoxLayout;
class QTreeView;

namespace vitrine::ui {

class RooflinePlot;

/// Memory by category over the whole run, 120 high.
class MemoryStrip final : public QWidget {
    Q_OBJECT

public:
    explicit MemoryStrip(QWidget* parent = nullptr);
    void setTimeline(TimelinePtr timeline);
    QSize sizeHint() const override { return {200, 120}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    TimelinePtr timeline_;
    QImage image_;
    TimelinePtr drawn_;
    QString drawnTheme_;
};

struct LiveNumbers {
    std::optional<double> tokensPerSecond, firstTokenSeconds;
    std::optional<std::uint64_t> tokens, wantedTokens, kvBytes, peakBytes;
    QString state;
    QString ending; ///< why the answers ended; empty: not known
};

class LivePanel final : public QWidget {
    Q_OBJECT

public:
    explicit LivePanel(QWidget* parent = nullptr);
    DockHeader* header() const { return header_; }
    void setNumbers(const QString& title, const LiveNumbers& numbers);
    void setTimeline(TimelinePtr timeline);
    /// Nothing: the run has none, and the panel no room for it.
    void setRoofline(const std::optional<profiler::RooflineSummary>& facts);
    void setRuns(const std::vector<sessions::RunInfo>& runs, sessions::RunId shown);
    QString valueText(int row) const { return values_[static_cast<std::size_t>(row)]->text(); }
    RooflinePlot* roofline() const { return roofline_; }
    QString endingText() const { return ending_->text(); }
    QString rooflineText() const { return rooflineSentence_->text(); }

signals:
    void runWanted(qint64 run);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* buildNumbers();
    QWidget* buildMemory();
    QWidget* buildRoofline();
    QWidget* buildRuns();
    DockHeader* header_;
    QBoxLayout* blocks_;
    QWidget* rooflineBlock_ = nullptr;
    TextLabel* rooflineSentence_ = nullptr;
    RooflinePlot* roofline_ = nullptr;
    std::array<TextLabel*, 6> values_{};
    TextLabel* ending_ = nullptr;
    MemoryStrip* strip_ = nullptr;
    QTreeView* runs_ = nullptr;
    FlatTreeModel* model_ = nullptr;
};

} // namespace vitrine::ui
