// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Attention masks as programs: an editor with sliders at the left, the map of blocks in the middle, numbers, reasons
// and measured times in the inspector. A and B are two programs at the same sizes; an attention run that is chosen as
// run A or B brings its program and times along.

#include <optional>

#include "ui/models/mask_lab/mask_lab.h"
#include "ui/models/mask_lab/mask_reasons.h"
#include "ui/models/mask_lab/mask_runs.h"
#include "ui/widgets/base/view.h"
#include "ui/widgets/block_map/block_map.h"

class QTableView;
class QToolButton;

namespace vitrine::ui {

class FlatTreeModel;
class MaskControls;
class MaskEditor;
class MaskExports;
class MaskInspector;

class MaskLabView final : public View {
    Q_OBJECT

public:
    explicit MaskLabView(const ViewServices& context, QWidget* parent = nullptr);
    ~MaskLabView() override;
    MaskLabView(const MaskLabView&) = delete; // keeps its drafts once
    MaskLabView& operator=(const MaskLabView&) = delete;

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    int inspectorWidth() const override { return 324; }
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    bool undoesItself() const override { return true; }
    QString find(const QString& text, int direction) override;
    QList<QWidget*> focusStops() const override;
    QList<QWidget*> focusOrder() const override;
    bool settled() const override;
    void takeExperiment(const QString& experimentJson) override;
    void takeFolder(const QString& path) override;
    void activated() override;
    void deactivated() override;

    MaskLab* lab() const { return lab_; }
    MaskRuns* runs() const { return runs_; }
    BlockMap* map() const { return map_; }
    MaskControls* controls() const { return controls_; }
    MaskEditor* editor() const { return editor_; }
    MaskInspector* panel() const { return panel_; }
    MaskExports* exports() const { return exports_; }
    QAbstractButton* dockTab() const;
    /// The side whose program the editor shows: that of the map, A for the difference.
    int shownSide() const;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void buildBody();
    void buildTable();
    void connectLab();
    void connectParts();
    void connectRuns();

    const MaskLab::Side& shownLab() const { return lab_->side(shownSide()); }
    void showSide(BlockMap::Side side);
    void updateStudy();
    void updateMaps();
    void updateNumbers();
    void updateSizes();
    void updatePointed();
    void updateStatus();
    void updateTable();
    void updateMeasure();
    void updateNarrow();
    void setDockOpen(bool open);
    QString copyText() const;

    static constexpr int kLeftWidth = 350; ///< of the editor

    MaskLab* lab_;
    MaskRuns* runs_;
    BlockMap::Side before_ = BlockMap::Side::A; ///< that Space flips back to
    bool flipping_ = false;
    BlockMap* map_;
    MaskExports* exports_;
    MaskControls* controls_;
    MaskEditor* editor_ = nullptr;
    MaskInspector* panel_;
    QToolButton* dockTab_ = nullptr;
    QTableView* twin_ = nullptr;
    FlatTreeModel* twinModel_ = nullptr;
    std::optional<MaskReasons> reasons_;
    bool narrow_ = false;
    std::optional<bool> dockOpen_; ///< as somebody chose; none: open where the map loses nothing by it
};

} // namespace vitrine::ui
