// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The Precision lab: what each format does to the weights of a model, matrix by matrix and group by group, and to the
// probabilities of a text. It shows a run of the workload `precision`; matrices are read from the model's files on a
// thread while one looks at them.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "ui/models/common/latest_job.h"
#include "ui/models/precision/keep_list.h"
#include "ui/models/precision/pin_table.h"
#include "ui/models/precision/precision_map.h"
#include "ui/models/precision/tensor_reader.h"
#include "ui/models/precision/token_words.h"
#include "ui/views/common/document_view.h"
#include "ui/views/common/tool_note.h"
#include "ui/widgets/plots/heat_map.h"

class QBoxLayout;
class QCheckBox;
class QPushButton;
class QTableView;

namespace vitrine::ui {

struct Exported;
class ExpertStrip;
class FormatDelegate;
class GroupGrid;
class GroupStrip;
class HistogramLane;
class KeepPanel;
class LabHead;
class LabPanel;
class LabTextPane;
class ScoredText;
class TokenReadout;

class PrecisionView final : public DocumentView, public ToolNote {
    Q_OBJECT

public:
    explicit PrecisionView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    bool settled() const override;
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    QString find(const QString& text, int direction) override;
    QString toolNote() const override; ///< how the format looked at rounds

    /// Reads details of matrices from elsewhere than the model's files.
    void setTensorSource(TensorSource source);
    /// Opens Kernels, or Memory where no kernels were recorded, at the step that scored the token in format A.
    void openToken(int token);

    const PrecisionDataPtr& data() const { return data_; } ///< null: no run of the lab is shown
    const PrecisionMap& cells() const { return cells_; }
    std::size_t formatA() const { return a_; } ///< numbers of formats
    std::size_t formatB() const { return b_; }
    void setFormats(std::size_t a, std::size_t b);
    void flip(); ///< A and B change places
    std::optional<std::size_t> weight() const { return weight_; }
    void selectWeight(std::size_t weight);

    HeatMap* map() const { return map_; }
    HistogramLane* histogram() const { return histogram_; }
    GroupStrip* strip() const { return strip_; }
    GroupGrid* grid() const { return grid_; }
    ScoredText* text() const;
    ExpertStrip* experts() const;
    KeepPanel* keep() const;
    QTableView* formatList() const { return formats_; }
    QTableView* worstList() const { return worst_; }
    LabHead* tensorHead() const { return tensorHead_; }
    LabHead* groupHead() const { return groupHead_; }
    TokenReadout* tokenReadout() const;

protected:
    void refresh() override;
    std::vector<sessions::RunId> shownRuns() const override; ///< none, until one asks for the moment of a token
    void onEvents(sessions::RunId run) override;
    QList<QWidget*> bodyStops() const override;
    QString copyText() const override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    /// What of a run the data depend on.
    struct Source {
        QString session;
        sessions::RunId run = 0;
        sessions::RunStatus status = sessions::RunStatus::Running;
        std::size_t metrics = 0; ///< hash of its JSON
        std::size_t runs = 0;    ///< of the session
        bool operator==(const Source&) const = default;
    };

    void buildHeader();
    void buildBody();
    QWidget* buildTensorRow(QWidget* parent);
    QWidget* buildLowerRow(QWidget* parent);
    QWidget* buildFormatPane(QWidget* parent);
    void connectParts();

    const sessions::RunInfo* labRun() const;
    void sayWhyEmpty(const sessions::RunInfo* run);
    void takeData(PrecisionDataPtr data);
    bool grows(const PrecisionDataPtr& data) const;
    void takeGrown(PrecisionDataPtr data);
    LabPin shownPin() const;
    void goToToken();
    ErrorMeasure measure() const;
    bool expertsShown() const;
    const ErrorScale& scale();
    std::size_t roleOf(std::size_t weight) const;
    QString formatTitle(std::size_t format) const;

    void updateAll();
    void updateMap();
    void updateWeight();
    void askTensor();
    void takeTensor(const std::shared_ptr<const PrecisionTensor>& tensor);
    void showGroup(std::shared_ptr<const engine::GroupDetail> group);
    void clearTensor(const QString& why, bool alarming);
    void updateFormats();
    void chooseCell(int row, int column);
    void askGroup(std::int64_t group);
    void placeParts();
    void showPane(int pane);

    void say(const Exported& exported);
    /// Asks for the experiment that `next` makes of the run's.
    void wantAfter(const std::function<QString(const std::string&)>& next);

    Source source_;
    LatestJob<PrecisionDataPtr> dataJob_;
    PrecisionDataPtr data_;
    PrecisionMap cells_;
    ErrorScale liveScale_;                                 ///< of a run that goes on: of what is known
    std::map<std::pair<QString, int>, ErrorScale> scales_; ///< by session and measure: set once, kept
    std::size_t a_ = 0, b_ = 0;
    std::optional<std::size_t> weight_;
    sessions::RunId shownRun_ = 0;           ///< that data_ is of
    bool ownFormats_ = false;                ///< somebody chose A or B; else A is the format that a live run is at
    std::optional<int> wantedToken_;         ///< its moment is looked up when the events have been read
    std::map<int, std::int64_t> lastExpert_; ///< looked at last, by layer
    std::shared_ptr<const PrecisionTensor> tensor_;
    std::shared_ptr<const engine::GroupDetail> group_;
    bool choosing_ = false; ///< a table's row follows what is chosen, not the other way round
    bool narrow_ = false;
    QString found_; ///< what was typed last in the search field

    SegmentedControl *measures_, *layouts_, *panes_;
    TextLabel* textName_;
    QCheckBox* numbers_;
    QPushButton* export_;
    LabHead *mapHead_, *tensorHead_, *groupHead_, *formatHead_;
    HeatMap* map_;
    HistogramLane* histogram_;
    GroupStrip* strip_;
    QTableView *worst_, *formats_;
    FlatTreeModel *worstModel_, *formatModel_;
    FormatDelegate* formatLook_;
    GroupGrid* grid_;
    LabTextPane* textPane_;
    TextLabel* keptNote_;
    QWidget *paneBar_, *formatPane_;
    QBoxLayout *tensorRow_, *lowerRow_;
    LabPanel* panel_;
    TensorReader* reader_ = nullptr;
};

} // namespace vitrine::ui
