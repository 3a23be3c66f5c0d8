// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// One step in the view: how it is chosen, and what limits it.
#include <QCheckBox>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QStackedWidget>
#include <QTextDocumentFragment>
#include <QWheelEvent>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/views/rl/rl_lanes.h"
#include "ui/views/rl/rl_step_pane.h"
#include "ui/views/rl/rl_view.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

namespace {

constexpr int kSentenceHeight = 30;
constexpr int kRoomForRlLanes = 600; ///< height of the body from which on all lanes are open
constexpr int kStepPaneHeight = 238;
constexpr std::int64_t kLongStride = 10;

} // namespace

QWidget* RlView::buildSentence(QWidget* parent) {
    sentenceRow_ = new Surface(Surface::Fill::Window, Surface::Bottom, parent);
    sentenceRow_->setFixedHeight(kSentenceHeight);
    auto* row = new QHBoxLayout(sentenceRow_);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(12);
    sentence_ = new TextLabel({}, TypeRole::Body, TextColor::Text1, false, sentenceRow_);
    sentence_->setTextFormat(Qt::RichText);
    change_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, sentenceRow_);
    change_->setElide(true);
    change_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    try_ = new QPushButton(tr("Try"), sentenceRow_);
    setControlHeight(try_, 22);
    row->addWidget(sentence_);
    row->addWidget(change_, 1);
    row->addWidget(try_);
    connect(try_, &QPushButton::clicked, this, [this] {
        if (wanted_) {
            emit experimentWanted(textOf(wanted_->experimentJson));
        }
    });
    return sentenceRow_;
}

RlView::Page RlView::page() const {
    return static_cast<Page>(pages_->current());
}

void RlView::showPage(Page page) {
    pages_->setCurrent(page);
    content_->setCurrentIndex(page);
    header()->setTableShown(false);
    for (QWidget* control :
         {static_cast<QWidget*>(axes_), static_cast<QWidget*>(groups_), static_cast<QWidget*>(reference_)}) {
        control->setVisible(page == Curves);
    }
    emit inspectorWanted();
    emit availabilityChanged();
}

void RlView::showPage(const QString& page) {
    if (page == QLatin1String("samples")) {
        showPage(Samples);
    }
}

/// Of the chosen step of A.
void RlView::updateLimit() {
    const auto number = lanes_->chosenStep();
    const auto index = a_ != nullptr && number ? a_->run->indexOf(*number) : std::nullopt;
    const RlStepMemory* memory =
        step_->memory() != nullptr && number && step_->memory()->step == *number ? step_->memory().get() : nullptr;
    const auto limit = index ? rlLimit(*a_->run, *index, memory) : std::nullopt;
    const sessions::RunInfo* info = runInfo(runs_.a);
    wanted_ = limit && info != nullptr ? limitChange(*limit, info->specJson, info->metricsJson) : std::nullopt;
    sentence_->setText(limit ? limitSentence(*limit) : QString());
    change_->setText(wanted_ ? wanted_->words : QString());
    change_->setToolTip(change_->text());
    try_->setVisible(wanted_.has_value());
    sentenceRow_->setVisible(limit.has_value());
}

/// Goes through the results of all runs, so not while one of them goes on.
void RlView::updateReference() {
    const sessions::RunInfo* info = runInfo(runs_.a);
    const std::vector<sessions::RunInfo>& runs = document()->runs();
    const std::pair now{runs_.a, std::ranges::count_if(runs, [](const sessions::RunInfo& run) {
                            return run.status != sessions::RunStatus::Running;
                        })};
    if (info == nullptr || now == referredTo_) {
        return;
    }
    referredTo_ = now;
    referring_.start([runs, run = *info] { return rlReference(runs, run); },
                     [this](std::optional<RlReference> found) {
                         found_ = found;
                         updateBody();
                     });
}

QString RlView::sentenceText() const {
    return QTextDocumentFragment::fromHtml(sentence_->text()).toPlainText();
}

QString RlView::changeText() const {
    return change_->text();
}

void RlView::chooseStep(std::int64_t step) {
    if (const auto place = lanes_->placeOf(step)) {
        time_->setCursor(place);
    }
}

void RlView::stepBy(std::int64_t steps) {
    if (const auto now = lanes_->chosenStep()) {
        const std::int64_t first =
            std::min(a_ != nullptr ? a_->run->firstStep() : *now, b_ != nullptr ? b_->run->firstStep() : *now);
        const std::int64_t last =
            std::max(a_ != nullptr ? a_->run->lastStep() : *now, b_ != nullptr ? b_->run->lastStep() : *now);
        chooseStep(std::clamp(*now + steps, first, last));
    }
}

void RlView::nextEvaluation() {
    const auto now = lanes_->chosenStep();
    if (!now || a_ == nullptr) {
        return;
    }
    const auto& all = a_->run->evaluations();
    const std::int64_t from = time_->cursor() ? *now : 0;
    const auto next = std::ranges::find_if(all, [&](const RlEvaluation& each) { return each.step > from; });
    if (next != all.end()) {
        chooseStep(next->step);
    }
}

/// False: the key does nothing here.
bool RlView::takeKey(const QKeyEvent& event) {
    const Qt::KeyboardModifiers modifiers = event.modifiers() & ~Qt::KeypadModifier;
    const bool shift = modifiers == Qt::ShiftModifier;
    if (page() != Curves || (modifiers != Qt::NoModifier && !shift)) {
        return false;
    }
    const int key = event.key();
    if (key == Qt::Key_Left || key == Qt::Key_Right) {
        stepBy((key == Qt::Key_Right ? 1 : -1) * (shift ? kLongStride : 1));
    } else if (key == Qt::Key_E && !shift) {
        nextEvaluation();
    } else {
        return false;
    }
    return true;
}

void RlView::keyPressEvent(QKeyEvent* event) {
    if (!takeKey(*event)) {
        DocumentView::keyPressEvent(event);
    }
}

/// The wheel zooms over a plot; over the header of a lane it scrolls, where lanes have no room.
bool RlView::eventFilter(QObject* watched, QEvent* event) {
    switch (event->type()) {
    case QEvent::KeyPress:
        return takeKey(*static_cast<QKeyEvent*>(event));
    case QEvent::FocusIn:
        if (watched == lanes_->reward()) {
            scroll_->verticalScrollBar()->setValue(0); // with the ruler above it
        } else if (auto* lane = qobject_cast<Lane*>(watched)) {
            scroll_->ensureWidgetVisible(lane, 0, 0);
        }
        break;
    case QEvent::Wheel:
        if (static_cast<QWheelEvent*>(event)->position().y() < Lane::kHeaderHeight &&
            scroll_->verticalScrollBar()->maximum() > 0) {
            event->ignore(); // the scroll area takes it
            return true;
        }
        break;
    default:
        break;
    }
    return DocumentView::eventFilter(watched, event);
}

void RlView::resizeEvent(QResizeEvent* event) {
    DocumentView::resizeEvent(event);
    const bool low = body_->height() < kRoomForRlLanes;
    lanes_->setLow(low);
    step_->setLow(low);
    if (low) { // as high as its rows are, and the lanes scroll above it
        step_->setMinimumHeight(0);
        step_->setMaximumHeight(QWIDGETSIZE_MAX);
    } else {
        step_->setFixedHeight(kStepPaneHeight);
    }
}

} // namespace vitrine::ui
