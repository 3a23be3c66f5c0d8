// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/device_strip.h"

#include <QEvent>
#include <QHelpEvent>
#include <QMenu>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr int kMargin = 9;
constexpr int kBar = 56;
constexpr int kGap = 8;
constexpr int kLongName = 18;

int slotFor(const QString& text) {
    return static_cast<int>(std::ceil(textWidth(text, Theme::instance().font(TypeRole::Table))));
}

} // namespace

DeviceStrip::DeviceStrip(SessionDocument* document, DeviceFeed* feed, QWidget* parent)
    : QToolButton(parent), document_(document), feed_(feed) {
    setObjectName(QStringLiteral("device"));
    setFixedHeight(26);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setAttribute(Qt::WA_Hover);
    connect(document, &SessionDocument::runsChanged, this, &DeviceStrip::refreshRun);
    connect(document, &SessionDocument::selectionChanged, this, &DeviceStrip::refreshRun);
    connect(&Theme::instance(), &Theme::changed, this, &DeviceStrip::makeParts);
    if (feed == nullptr) {
        setFocusPolicy(Qt::NoFocus);
        refreshRun();
        return;
    }
    setFocusPolicy(Qt::StrongFocus);
    setPopupMode(QToolButton::InstantPopup);
    auto* devices = new QMenu(this);
    setMenu(devices);
    connect(devices, &QMenu::aboutToShow, this, [this] {
        menuOpen_ = true;
        updateWatch();
        fillMenu();
    });
    connect(devices, &QMenu::aboutToHide, this, [this] {
        menuOpen_ = false;
        updateWatch();
    });
    for (const auto changed : {&DeviceFeed::devicesChanged, &DeviceFeed::choiceChanged}) {
        connect(feed, changed, this, [this] {
            refreshDevice();
            updateWatch();
        });
    }
    connect(feed, &DeviceFeed::readingsChanged, this, &DeviceStrip::refreshDevice);
    refreshRun();
    refreshDevice();
}

DeviceStrip::~DeviceStrip() {
    if (feed_ != nullptr) {
        feed_->watch({});
    }
}

void DeviceStrip::refreshRun() {
    runDevice_.clear();
    runBudget_.clear();
    runLine_.clear();
    runOn_.clear();
    budget_.reset();
    runUsed_ = 0;
    if (const sessions::RunInfo* run = document_->run(document_->runA())) {
        const RunSummary facts = runSummary(*run);
        runDevice_ = facts.device.size() > kLongName ? facts.backend.toUpper() : facts.device;
        runOn_ = facts.device;
        budget_ = facts.budget;
        if (facts.budget) {
            QString size = bytesText(*facts.budget);
            runBudget_ = tr("budget %1").arg(size.replace(QLatin1String(".00"), QString()));
            runUsed_ = facts.peak ? std::min(1.0, static_cast<double>(*facts.peak) /
                                                      static_cast<double>(std::max<std::uint64_t>(1, *facts.budget)))
                                  : 0;
        } else if (facts.peak) {
            runBudget_ = tr("peak %1").arg(bytesText(*facts.peak));
        }
        runLine_ = tr("Run A ran on %1").arg(facts.device);
        if (facts.peak) {
            runLine_ += facts.budget ? tr(", peak %1 of %2").arg(bytesText(*facts.peak), bytesText(*facts.budget))
                                     : tr(", peak %1").arg(bytesText(*facts.peak));
        }
    }
    if (feed_ == nullptr) {
        setVisible(!runDevice_.isEmpty() || !runBudget_.isEmpty());
    }
    makeParts();
}

void DeviceStrip::refreshDevice() {
    const std::vector<DeviceEntry> known = feed_->devices();
    const int now = feed_->chosen();
    device_ = now >= 0 ? std::optional(known[static_cast<std::size_t>(now)]) : std::nullopt;
    const auto read = now >= 0 ? feed_->reading(now) : std::nullopt;
    reading_ = read ? std::optional(plausible(*read)) : std::nullopt;
    if (menuOpen_) {
        updateTexts();
    }
    makeParts();
}

void DeviceStrip::makeParts() {
    parts_.clear();
    const auto add = [this](const QString& text, const QString& widest, bool strong, bool beforeBar) {
        parts_.push_back({text, std::max(slotFor(text), slotFor(widest)), strong, false, beforeBar});
    };
    if (feed_ == nullptr) {
        for (const QString& text : {runDevice_, runBudget_}) {
            if (!text.isEmpty()) {
                add(text, {}, text == runBudget_, true);
            }
        }
    } else if (!device_) {
        add(tr("looking for devices"), {}, false, true);
    } else {
        add(deviceTitle(*device_), {}, false, true);
        if (reading_ && silent(*reading_)) {
            add(tr("does not answer"), {}, true, true);
            parts_.back().warns = true;
        } else {
            DeviceReading full;
            full.total = full.used = reading_ && reading_->total ? *reading_->total : device_->memoryBytes;
            add(deviceMemoryText(*device_, reading_), deviceMemoryText(*device_, full), true, true);
            if (reading_) {
                const auto busy = reading_->busy;
                add(busy ? QString::number(std::lround(*busy * 100)) + QStringLiteral("\u00A0%") : unknownText(),
                    QStringLiteral("100\u00A0%"), false, false);
            }
            if (reading_ && device_->gpu()) {
                add(wattsText(reading_->power), wattsText(888), false, false);
                add(celsiusText(reading_->temperature), celsiusText(88), false, false);
                add(hertzText(reading_->clock), hertzText(8.88e9), false, false);
                parts_.back().warns = !reading_->heldBack.isEmpty();
            }
        }
    }
    QStringList words;
    for (const Part& part : parts_) {
        words << part.text;
    }
    setAccessibleName(feed_ != nullptr ? tr("Device of the next run: %1").arg(words.join(QStringLiteral(", ")))
                                       : tr("Device %1").arg(words.join(QStringLiteral(", "))));
    fit(room_);
    update();
}

int DeviceStrip::widthOf(std::size_t parts) const {
    const bool bar = feed_ != nullptr || runUsed_ > 0;
    int width = 2 * kMargin + (bar ? kBar : 0);
    for (std::size_t i = 0; i < parts; ++i) {
        width += parts_[i].slot + (bar || i > 0 ? kGap : 0);
    }
    return std::max(width, 40);
}

void DeviceStrip::fit(int width) {
    room_ = width;
    count_ = narrow_ ? 0 : parts_.size();
    while (count_ > 0 && widthOf(count_) > width) {
        --count_;
    }
    setFixedWidth(widthOf(count_));
}

void DeviceStrip::setNarrow(bool narrow) {
    narrow_ = narrow;
    fit(room_);
    update();
}

QSize DeviceStrip::sizeHint() const {
    return {widthOf(count_), 26};
}

QStringList DeviceStrip::shownTexts() const {
    QStringList texts;
    for (std::size_t i = 0; i < count_; ++i) {
        texts << parts_[i].text;
    }
    return texts;
}

void DeviceStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(hasFocus() ? QPen(t.accent, 2) : QPen(t.line1));
    painter.setBrush(feed_ != nullptr && underMouse() ? t.hover : t.raised);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    painter.setRenderHint(QPainter::Antialiasing, false);
    const QFont font = Theme::instance().font(TypeRole::Table);
    double x = kMargin;
    const auto draw = [&](const Part& part, int alignment, const QColor& color) {
        drawText(painter, QRectF(x, 0, part.slot + 1, height()), alignment | Qt::AlignVCenter, part.text,
                 part.warns ? t.warn : color, font);
        x += part.slot + kGap;
    };
    std::size_t i = 0;
    for (; i < count_ && parts_[i].beforeBar; ++i) {
        draw(parts_[i], Qt::AlignLeft, parts_[i].strong ? t.text1 : t.text3);
    }
    if (feed_ != nullptr || runUsed_ > 0) {
        const QRectF bar(x, 10, kBar, 6);
        const auto fill = [&](double from, double to, const QColor& color) {
            painter.fillRect(QRectF(bar.left() + kBar * from, bar.top(), kBar * (to - from), bar.height()), color);
        };
        painter.fillRect(bar, t.line1);
        if (feed_ == nullptr) {
            fill(0, std::max(1.0 / kBar, runUsed_), t.text2);
        } else if (reading_ && reading_->total && reading_->used) {
            const auto total = static_cast<double>(*reading_->total);
            const double own = static_cast<double>(reading_->own.value_or(0)) / total;
            const double used = static_cast<double>(*reading_->used) / total;
            fill(own, used, t.line2);
            fill(0, own, t.accent);
        }
        if (device_ && budget_ && device_->name == runOn_ && *budget_ < device_->memoryBytes) {
            const double at = static_cast<double>(*budget_) / static_cast<double>(device_->memoryBytes);
            plumbline(painter, std::floor(bar.left() + kBar * at), bar.top() - 2, bar.bottom() + 2, t.bad);
        }
        x += kBar + kGap;
    }
    for (; i < count_; ++i) {
        draw(parts_[i], Qt::AlignRight, t.text2);
    }
}

bool DeviceStrip::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        // Made when it is asked for: the text of a tool tip that is up would change under the eye.
        QStringList lines;
        if (device_) {
            lines << deviceLines(*device_, reading_);
        }
        if (feed_ != nullptr) {
            lines << feed_->notes();
        }
        if (!runLine_.isEmpty()) {
            lines << runLine_;
        }
        QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), lines.join(QLatin1Char('\n')), this);
        return true;
    }
    return QToolButton::event(event);
}

void DeviceStrip::fillMenu() {
    menu()->clear();
    const std::vector<DeviceEntry> known = feed_->devices();
    QAction* automatic = menu()->addAction(tr("Automatic: the first device that runs can use"));
    automatic->setData(-1);
    for (int i = 0; i < static_cast<int>(known.size()); ++i) {
        menu()->addAction(QString())->setData(i);
    }
    for (QAction* action : menu()->actions()) {
        action->setCheckable(true);
        action->setChecked(action->data().toInt() == feed_->choice());
        connect(action, &QAction::triggered, this, [this, action] { feed_->choose(action->data().toInt()); });
    }
    updateTexts();
    const QStringList notes = feed_->notes();
    if (!notes.isEmpty()) {
        menu()->addSeparator();
    }
    for (const QString& note : notes) {
        menu()->addAction(note)->setEnabled(false);
    }
}

void DeviceStrip::updateTexts() {
    const std::vector<DeviceEntry> known = feed_->devices();
    for (QAction* action : menu()->actions()) {
        const int i = action->data().isValid() ? action->data().toInt() : -1;
        if (i < 0 || i >= static_cast<int>(known.size())) {
            continue;
        }
        const DeviceEntry& device = known[static_cast<std::size_t>(i)];
        const auto read = feed_->reading(i);
        const auto reading = read ? std::optional(plausible(*read)) : std::nullopt;
        QStringList words;
        words << (device.gpu() ? tr("GPU %1: %2").arg(device.ordinal).arg(device.name) : deviceTitle(device));
        if (reading && silent(*reading)) {
            words << tr("does not answer");
        } else {
            words << deviceMemoryText(device, reading);
            if (reading && reading->busy) {
                words << tr("busy %1").arg(shareText(*reading->busy));
            }
        }
        words.removeAll(QString());
        action->setText(words.join(QStringLiteral(", ")));
        action->setEnabled(device.whyNot.isEmpty());
    }
}

void DeviceStrip::updateWatch() {
    if (feed_ == nullptr) {
        return;
    }
    std::set<int> wanted;
    const bool seen = isVisible() && !window()->isMinimized();
    const int now = feed_->chosen();
    if (seen && now >= 0) {
        wanted.insert(now);
    }
    if (menuOpen_) {
        for (int i = 0; i < static_cast<int>(feed_->devices().size()); ++i) {
            wanted.insert(i);
        }
    }
    feed_->watch(wanted);
}

bool DeviceStrip::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::WindowStateChange) {
        updateWatch();
    }
    return QToolButton::eventFilter(watched, event);
}

void DeviceStrip::showEvent(QShowEvent* event) {
    QToolButton::showEvent(event);
    if (watchedWindow_ != window()) {
        if (watchedWindow_ != nullptr) {
            watchedWindow_->removeEventFilter(this);
        }
        watchedWindow_ = window();
        watchedWindow_->installEventFilter(this);
    }
    updateWatch();
}

void DeviceStrip::hideEvent(QHideEvent* event) {
    QToolButton::hideEvent(event);
    updateWatch();
}

} // namespace vitrine::ui
