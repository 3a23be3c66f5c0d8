// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/format.h"

#include <QObject>

#include "profiler/analysis/number_text.h"

namespace vitrine::ui {

QString textOf(std::string_view utf8) {
    return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

QString bytesText(std::uint64_t bytes) {
    return textOf(profiler::bytesText(bytes));
}

QString bytesText(std::optional<std::uint64_t> bytes) {
    return textOf(profiler::bytesText(bytes));
}

QString signedBytesText(std::int64_t bytes) {
    return textOf(profiler::signedBytesText(bytes));
}

QString peakText(std::uint64_t bytes, bool incomplete) {
    return incomplete ? QObject::tr("%1 (records lost)").arg(bytesText(bytes)) : bytesText(bytes);
}

QString exactBytesText(std::uint64_t bytes) {
    return textOf(profiler::exactBytesText(bytes));
}

QString gibText(std::uint64_t bytes) {
    return textOf(profiler::gibText(bytes));
}

QString countText(std::int64_t value) {
    return textOf(profiler::countText(value));
}

QString durationText(base::TimeNs ns) {
    return textOf(profiler::durationText(ns));
}

QString instantText(base::TimeNs time, base::TimeNs step) {
    return textOf(profiler::instantText(time, step));
}

QString instantText(base::TimeNs time) {
    return textOf(profiler::instantText(time));
}

QString shareText(double part) {
    return textOf(profiler::shareText(part));
}

QString ratioText(double ratio) {
    return textOf(profiler::ratioText(ratio));
}

QString rateText(double bytesPerSecond) {
    return textOf(profiler::rateText(bytesPerSecond));
}

QString addressText(std::uint64_t address) {
    return textOf(profiler::addressText(address));
}

QString unknownText() {
    return textOf(profiler::unknownText());
}

} // namespace vitrine::ui
