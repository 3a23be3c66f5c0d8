// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/rail.h"

#include <QAction>
#include <QHBoxLayout>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

class RailButton final : public QToolButton {
public:
    RailButton(const QString& title, const QString& icon, QWidget* parent)
        : QToolButton(parent), title_(title), icon_(icon) {
        setAccessibleName(title);
        setFocusPolicy(Qt::StrongFocus);
        setAttribute(Qt::WA_Hover);
    }

    void setNarrow(bool narrow) {
        narrow_ = narrow;
        setFixedSize(narrow ? 47 : 67, narrow ? 44 : 52);
    }

protected:
    void paintEvent(QPaintEvent*) override {
        const ThemeTokens& t = themeTokens();
        QPainter painter(this);
        if (isChecked() || underMouse()) {
            painter.fillRect(rect(), t.hover);
        }
        if (isChecked()) {
            painter.fillRect(QRect(0, 0, 3, height()), t.accent);
        }
        const QColor color = isChecked() ? t.text1 : t.text2;
        const int side = 18;
        const double top = narrow_ ? (height() - side) / 2.0 : 8;
        painter.drawPixmap(QPointF((width() - side) / 2.0, top), iconPixmap(icon_, side, color, deviceRatio(painter)));
        if (!narrow_) {
            drawText(painter, QRectF(2, 29, width() - 4, 16), Qt::AlignCenter, title_, color,
                     Theme::instance().font(TypeRole::Axis));
        }
        if (hasFocus()) {
            painter.setPen(QPen(t.accent, 2));
            painter.drawRect(QRectF(rect()).adjusted(2, 2, -2, -2));
        }
    }

private:
    QString title_, icon_;
    bool narrow_ = false;
};

} // namespace

EdgeBar::EdgeBar(const QString& title, Qt::Edge line, QWidget* parent) : QToolBar(title, parent), line_(line) {
    setMovable(false);
    setFloatable(false);
    setContextMenuPolicy(Qt::PreventContextMenu);
}

void EdgeBar::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.window);
    if (line_ == Qt::BottomEdge) {
        hairline(painter, 0, width(), height() - 1, t.line1);
    } else {
        plumbline(painter, width() - 1, 0, height(), t.line1);
    }
}

Rail::Rail(QWidget* parent) : EdgeBar(tr("Views"), Qt::RightEdge, parent) {
    setObjectName(QStringLiteral("rail"));
    setOrientation(Qt::Vertical);
    auto* content = new QWidget(this);
    column_ = new QVBoxLayout(content);
    column_->setContentsMargins(0, 6, 1, 0);
    column_->setSpacing(0);
    column_->setAlignment(Qt::AlignTop);
    content->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    addWidget(content);
    setFixedWidth(68);
}

void Rail::addView(QAction* action, const QString& title, const QString& iconName) {
    auto* button = new RailButton(title, iconName, this);
    button->setDefaultAction(action);
    button->setAccessibleName(title);
    const QString key = ActionList::keyText(action);
    button->setToolTip(key.isEmpty() ? title : QStringLiteral("%1 (%2)").arg(title, key));
    button->setNarrow(false);
    column_->addWidget(button);
    buttons_.push_back(button);
}

void Rail::setNarrow(bool narrow) {
    if (narrow_ == narrow) {
        return;
    }
    narrow_ = narrow;
    setFixedWidth(narrow ? 48 : 68);
    for (QToolButton* button : buttons_) {
        static_cast<RailButton*>(button)->setNarrow(narrow);
    }
}

QAbstractButton* Rail::buttonOf(QAction* action) const {
    for (QToolButton* button : buttons_) {
        if (button->defaultAction() == action) {
            return button;
        }
    }
    return nullptr;
}

RunPicker::RunPicker(QChar letter, SessionDocument* document, QWidget* parent)
    : QToolButton(parent), letter_(letter), document_(document) {
    setPopupMode(QToolButton::InstantPopup);
    setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed); // long titles give way first
    setFocusPolicy(Qt::StrongFocus);
    setAttribute(Qt::WA_Hover);
    setFixedHeight(26);
    auto* menu = new QMenu(this);
    setMenu(menu);
    connect(menu, &QMenu::aboutToShow, this, &RunPicker::fillMenu);
    connect(document, &SessionDocument::runsChanged, this, &RunPicker::refresh);
    connect(document, &SessionDocument::selectionChanged, this, &RunPicker::refresh);
    refresh();
}

void RunPicker::refresh() {
    const sessions::RunInfo* run = document_->run(letter_ == QLatin1Char('A') ? document_->runA() : document_->runB());
    active_ = run != nullptr;
    title_ = run != nullptr                ? QStringLiteral("#%1 %2").arg(run->id).arg(runTitle(*run))
             : letter_ == QLatin1Char('A') ? tr("no run")
                                           : tr("no baseline");
    setAccessibleName(letter_ == QLatin1Char('A') ? tr("Run A: %1").arg(title_) : tr("Baseline B: %1").arg(title_));
    setToolTip(title_);
    updateGeometry();
    update();
}

void RunPicker::fillMenu() {
    menu()->clear();
    const bool isA = letter_ == QLatin1Char('A');
    if (!isA) {
        connect(menu()->addAction(tr("No baseline")), &QAction::triggered, this, [this] { document_->setRunB(0); });
        menu()->addSeparator();
    }
    const auto& runs = document_->runs();
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        QAction* action = menu()->addAction(QStringLiteral("#%1  %2").arg(run->id).arg(runTitle(*run)));
        action->setCheckable(true);
        action->setChecked(run->id == (isA ? document_->runA() : document_->runB()));
        // A run is no baseline of itself; with a B the two change places.
        action->setEnabled(isA || run->id != document_->runA() || document_->runB() != 0);
        connect(action, &QAction::triggered, this, [this, isA, id = run->id] { document_->chooseRun(isA, id); });
    }
    if (runs.empty()) {
        menu()->addAction(tr("No run in this session"))->setEnabled(false);
    }
}

QSize RunPicker::sizeHint() const {
    const double text = textWidth(title_, Theme::instance().font(TypeRole::Table));
    return {std::min(260, static_cast<int>(text) + 58), 26};
}

void RunPicker::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(hasFocus() ? QPen(t.accent, 2) : QPen(t.line1));
    painter.setBrush(underMouse() ? t.hover : t.raised);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    painter.setRenderHint(QPainter::Antialiasing, false);
    drawRunBadge(painter, QRectF(8, 5, 16, 16), letter_, active_);
    drawText(painter, QRectF(31, 0, width() - 54, height()), Qt::AlignVCenter, title_, active_ ? t.text1 : t.text3,
             Theme::instance().font(TypeRole::Table));
    painter.drawPixmap(QPointF(width() - 20, 7),
                       iconPixmap(QStringLiteral("chevron-down"), 12, t.text3, deviceRatio(painter)));
}

Crumbs::Crumbs(TimeCursor* time, QWidget* parent) : QWidget(parent), time_(time) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    connect(time, &TimeCursor::filtersChanged, this, &Crumbs::rebuild);
    rebuild();
}

void Crumbs::rebuild() {
    while (QLayoutItem* item = layout()->takeAt(0)) {
        if (QWidget* widget = item->widget()) {
            widget->hide();
            widget->deleteLater();
        }
        delete item;
    }
    auto* all = new QPushButton(icon(QStringLiteral("filter"), themeTokens().text3), tr("All time"), this);
    all->setFlat(true);
    all->setIconSize({14, 14});
    all->setEnabled(!time_->filters().empty());
    all->setToolTip(tr("Remove all filters"));
    connect(all, &QPushButton::clicked, time_, &TimeCursor::clearFilters);
    layout()->addWidget(all);
    for (std::size_t i = 0; i < time_->filters().size(); ++i) {
        layout()->addWidget(new TextLabel(QStringLiteral("›"), TypeRole::Table, TextColor::Text3, false, this));
        auto* crumb = new QPushButton(icon(QStringLiteral("close")), time_->filters()[i].label, this);
        crumb->setLayoutDirection(Qt::RightToLeft); // the cross stands after the words
        crumb->setIconSize({10, 10});
        setControlHeight(crumb, 22);
        crumb->setToolTip(tr("Remove this filter"));
        connect(crumb, &QPushButton::clicked, this, [this, i] { time_->removeFilter(i); });
        layout()->addWidget(crumb);
    }
}

} // namespace vitrine::ui
