// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Attention masks as programs: an editor with sliders at the left, the map of blocks in the middle, numbers, reasons and measured
// times in the inspector. A and B are two programs at the same sizes; an attention run that is chosen as run A or B brings its
// program and times along.

#include <array>

#include "ui/models/mask_lab/mask_catalogue.h"
#include "ui/models/mask_lab/mask_lab.h"
#include "ui/models/mask_lab/mask_reasons.h"
#include "ui/models/mask_lab/mask_runs.h"
#include "ui/widgets/base/view.h"
#include "ui/widgets/block_map/block_map.h"

class QComboBox;
class QSplitter;
class QTableView;
class QToolButton;
class QVBoxLayout;

namespace vitrine::ui {

class CapturePanel;
class FlatTreeModel;
class HeadsPanel;
class MaskInspector;
class NumberField;
class NumberSlider;
class ProgramPanel;

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
    QString find(const QString& text, int direction) override;
    QList<QWidget*> focusStops() const override;
    QList<QWidget*> focusOrder() const override;
    bool settled() const override;
    void takeExperiment(const QString& experimentJson) override;
    void takeFolder(const QString& path) override;
    void activated() override;
    void deactivated() override;

    MaskLab* lab() const { return lab_; }
    BlockMap* map() const { return map_; }
    ProgramPanel* program() const { return program_; }
    CapturePanel* captures() const { return captures_; }
    HeadsPanel* heads() const { return heads_; }
    MaskInspector* panel() const { return panel_; }
    SegmentedControl* sideChoice() const { return sideChoice_; }
    SegmentedControl* contentChoice() const { return contentChoice_; }
    QComboBox* blockChoice() const { return block_; }
    QComboBox* scoresChoice() const { return scores_; }
    NumberField* queriesField() const { return queries_; }
    NumberField* keysField() const { return keys_; }
    QPushButton* measureButton() const { return measure_; }
    QAbstractButton* dockTab() const;
    std::vector<NumberSlider*> sliders() const;
    /// The side whose program the editor shows: that of the map, A for the difference.
    int shownSide() const { return shown_; }

    /// Writes PyTorch's arrays of the shown mask, on a worker; says in the status bar how it went.
    void exportArrays(const QString& path);
    MaskRuns* runs() const { return runs_; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void buildHeader();
    QWidget* buildLeft();
    void buildTable();
    void connectLab();
    void connectPanels();
    void connectRuns();

    void showSide(BlockMap::Side side);
    void updateStudy();
    void updateMaps();
    void updateNumbers();
    void updateSizes();
    void updatePointed();
    void updateStatus();
    void updateSliders();
    void updateTable();
    void updateMeasure();
    void updateNarrow();
    void setDockOpen(bool open);

    void readModel(const std::string& name, const std::map<std::string, std::string>& overrides);
    void chooseModelFolder();
    void chooseTensors();
    void chooseExport();
    void savePicture(bool vector);
    void copyPicture();
    QString copyText() const;

    static constexpr int kLeftWidth = 350; ///< of the editor

    MaskLab* lab_;
    MaskRuns* runs_;
    int shown_ = 0;
    BlockMap::Side before_ = BlockMap::Side::A; ///< that Space flips back to
    bool flipping_ = false;
    BlockMap* map_ = nullptr;
    ProgramPanel* program_ = nullptr;
    CapturePanel* captures_ = nullptr;
    HeadsPanel* heads_ = nullptr;
    MaskInspector* panel_ = nullptr;
    SegmentedControl *sideChoice_ = nullptr, *contentChoice_ = nullptr;
    QComboBox *block_ = nullptr, *scores_ = nullptr;
    NumberField *queries_ = nullptr, *keys_ = nullptr;
    QCheckBox* link_ = nullptr;
    QPushButton *export_ = nullptr, *copy_ = nullptr, *measure_ = nullptr;
    QSplitter* split_ = nullptr;
    QWidget *left_ = nullptr, *parameterHead_ = nullptr;
    QToolButton* dockTab_ = nullptr;
    QVBoxLayout* sliderColumn_ = nullptr;
    std::map<QString, NumberSlider*> sliders_;
    QTableView* twin_ = nullptr;
    FlatTreeModel* twinModel_ = nullptr;
    std::optional<MaskReasons> reasons_;
    std::string modelName_;
    std::optional<MaskModel> model_;
    QString said_; ///< of the last export
    bool narrow_ = false;
    std::optional<bool> dockOpen_; ///< as somebody chose; none: open where the map loses nothing by it

    LatestJob<std::pair<std::optional<MaskModel>, QString>> modelJob_;
    LatestJob<QString> exportJob_;
};

} // namespace vitrine::ui
