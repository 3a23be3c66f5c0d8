// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QPainter>
#include <QPushButton>
#include <QStackedLayout>
#include <QVBoxLayout>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

QString tableText() {
    return ViewHeader::tr("Show as table");
}

QString tableWord() {
    return ViewHeader::tr("Table");
}

constexpr int kSpacing = 12, kCloseSpacing = 8; ///< between controls; where there is little room

/// Spaces between what a row shows.
int gaps(const QLayout& row) {
    int shown = 0;
    for (int i = 0; i < row.count(); ++i) {
        shown += row.itemAt(i)->isEmpty() ? 0 : 1; // as spacers and hidden controls are
    }
    return std::max(0, shown - 1);
}

} // namespace

ViewHeader::ViewHeader(const QString& title, QWidget* parent) : QWidget(parent) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(kSpacing);
    title_ = new TextLabel(title, TypeRole::Title, TextColor::Text1, true, this);
    row->addWidget(title_);
    left_ = new QHBoxLayout;
    left_->setSpacing(kSpacing);
    row->addLayout(left_);
    row->addStretch(1);
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    facts_->setElide(true);
    facts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    facts_->hide();
    row->addWidget(facts_);
    right_ = new QHBoxLayout;
    right_->setSpacing(8);
    row->addLayout(right_);
    table_ = new QPushButton(tableText(), this);
    table_->setAccessibleName(tableText());
    table_->setCheckable(true);
    setControlHeight(table_, 24);
    row->addWidget(table_);
    connect(table_, &QPushButton::toggled, this, &ViewHeader::tableToggled);
    setFixedHeight(32);
}

SegmentedControl* ViewHeader::addSegments(const QStringList& texts, const QString& accessibleName) {
    auto* control = new SegmentedControl(texts, this);
    control->setAccessibleName(accessibleName);
    addControl(control);
    return control;
}

QCheckBox* ViewHeader::addCheck(const QString& text, bool on) {
    auto* check = new QCheckBox(text, this);
    check->setChecked(on);
    addControl(check);
    return check;
}

QComboBox* ViewHeader::addCombo(const QString& accessibleName) {
    auto* combo = new QComboBox(this);
    combo->setAccessibleName(accessibleName);
    setControlHeight(combo, 24);
    combo->setMinimumWidth(96); // long names give way before the header is clipped
    addControl(combo);
    return combo;
}

void ViewHeader::addControl(QWidget* control) {
    left_->addWidget(control);
}

void ViewHeader::addRightControl(QWidget* control) {
    right_->addWidget(control);
}

void ViewHeader::setTitle(const QString& title) {
    title_->setText(title);
}

void ViewHeader::setFacts(const QString& facts, const QString& key) {
    facts_->setText(facts);
    facts_->setToolTip(facts);
    if (!key.isEmpty() && key_ == nullptr) {
        key_ = new KeyHint(key, this);
        right_->insertWidget(0, key_);
    }
    fit();
}

void ViewHeader::setTableButton(bool visible) {
    table_->setVisible(visible);
}

bool ViewHeader::tableShown() const {
    return table_->isChecked();
}

void ViewHeader::setTableShown(bool on) {
    table_->setChecked(on);
}

/// By how much the table button is wider with all of its words.
int ViewHeader::tableWordsWidth() const {
    const QFontMetrics metrics = table_->fontMetrics();
    return table_->isHidden() ? 0 : metrics.horizontalAdvance(tableText()) - metrics.horizontalAdvance(tableWord());
}

QSize ViewHeader::minimumSizeHint() const {
    QSize least = layout()->totalMinimumSize();
    if (!tableShort_) {
        least.rwidth() -= tableWordsWidth() + (kSpacing - kCloseSpacing) * (gaps(*left_) + gaps(*layout()));
    }
    if (!facts_->isHidden()) {
        least.rwidth() -= facts_->minimumSizeHint().width() + kCloseSpacing;
    }
    if (key_ != nullptr && !key_->isHidden()) {
        least.rwidth() -= key_->sizeHint().width() + right_->spacing();
    }
    return least;
}

void ViewHeader::fit() {
    // The facts are the first to go: they also stand in the plot. Then controls stand closer and the table button says
    // less.
    facts_->hide();
    if (key_ != nullptr) {
        key_->hide();
    }
    const int won = tableWordsWidth() + (kSpacing - kCloseSpacing) * (gaps(*left_) + gaps(*layout()));
    const bool tight = width() < layout()->minimumSize().width() + (tableShort_ ? won : 0);
    if (tight != tableShort_) {
        tableShort_ = tight;
        table_->setText(tight ? tableWord() : tableText());
        table_->setToolTip(tight ? tableText() : QString());
        left_->setSpacing(tight ? kCloseSpacing : kSpacing);
        layout()->setSpacing(tight ? kCloseSpacing : kSpacing);
    }
    if (facts_->text().isEmpty()) {
        return;
    }
    const int free = width() - layout()->minimumSize().width();
    const int wanted = facts_->sizeHint().width() + (key_ != nullptr ? key_->sizeHint().width() + 8 : 0) + 12;
    facts_->setVisible(free >= wanted);
    if (key_ != nullptr) {
        key_->setVisible(free >= wanted);
    }
}

void ViewHeader::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fit();
}

void ViewHeader::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), themeTokens().window);
    hairline(painter, 0, width(), height() - 1, themeTokens().line0);
}

View::View(const QString& id, const QString& title, const ViewServices& context, QWidget* parent)
    : QWidget(parent), id_(id), title_(title), context_(context) {
    setObjectName(QStringLiteral("view.") + id);
    setAccessibleName(title);
    setFocusPolicy(Qt::ClickFocus);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    header_ = new ViewHeader(title, this);
    header_->setTableButton(false);
    error_ = new ErrorStrip(this);
    stack_ = new QStackedLayout;
    empty_ = new EmptyState(this);
    stack_->addWidget(empty_);
    column->addWidget(header_);
    column->addWidget(error_);
    column->addLayout(stack_, 1);
    connect(header_, &ViewHeader::tableToggled, this, [this] { updateStack(); });
}

bool View::perform(const QString& action) {
    if (action == QLatin1String("view.table") && table_ != nullptr) {
        header_->setTableShown(!header_->tableShown());
        return true;
    }
    return false;
}

QString View::whyNot(const QString& action) const {
    return action == QLatin1String("view.smooth") ? tr("This view has nothing to smooth.") : QString();
}

QString View::find(const QString&, int) {
    return {};
}

void View::showPage(const QString&) {}

void View::takeExperiment(const QString&) {}

void View::takeFolder(const QString&) {}

void View::takeData(const QString&) {}

void View::showError(const QString& sentence, const QString& details) {
    error_->setError(sentence, details);
}

void View::showEmpty(const QString& text, const QString& button, std::function<void()> action) {
    emptyShown_ = !text.isEmpty();
    if (emptyShown_) {
        empty_->set(text, button, std::move(action));
    }
    updateStack();
}

bool View::emptyShown() const {
    return emptyShown_;
}

QString View::emptyText() const {
    return emptyShown_ ? empty_->text() : QString();
}

QImage View::picture(const QSize& size, double dpr) {
    const QSize before = this->size();
    resize(size);
    ensurePolished();
    layout()->activate();
    QImage image(size * dpr, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(dpr);
    image.fill(themeTokens().window);
    render(&image, QPoint(), QRegion(), DrawWindowBackground | DrawChildren);
    resize(before);
    return image;
}

void View::setBody(QWidget* body) {
    body_ = body;
    stack_->addWidget(body);
    updateStack();
}

void View::setTable(QWidget* table) {
    table_ = table;
    stack_->addWidget(table);
    header_->setTableButton(true);
}

bool View::showMissingRun() {
    const SessionDocument& document = *context_.document;
    if (!document.isOpen()) {
        showEmpty(tr("No session is open. Open a .vitrine file, drop one here, or start a run."), tr("Open…"),
                  [this] { context_.actions->action(QStringLiteral("file.open"))->trigger(); });
        return true;
    }
    if (document.run(document.runA()) == nullptr) {
        showEmpty(tr("This session holds no run yet."), tr("Start a run"),
                  [this] { emit openView(QStringLiteral("run")); });
        return true;
    }
    return false;
}

void View::setReadout(const QString& text) {
    if (readout_ != text) {
        readout_ = text;
        emit readoutChanged(text);
    }
}

void View::updateStack() {
    QWidget* shown = emptyShown_ || body_ == nullptr              ? static_cast<QWidget*>(empty_)
                     : table_ != nullptr && header_->tableShown() ? table_
                                                                  : body_;
    stack_->setCurrentWidget(shown);
}

} // namespace vitrine::ui
