/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds since 1970 to and from a date. Pure. Years are counted from 1 March, so that the leap day comes
 * last. */
#include "hv/dev/internal.h"

#define DAY_SECONDS   86400
#define ERA_DAYS      146097                /* 400 years */
#define ERA_TO_1970   719468                /* days from 1 March of year 0 to 1970 */
#define THURSDAY      5                     /* 1 January 1970; Sunday is 1 */
#define MARCH_DAYS(m) ((153 * (m) + 2) / 5) /* days before month m, counted from March = 0 */

static s64 floor_div(s64 a, s64 b)
{
	return a / b - (a % b < 0);
}

s64 calendar_seconds(const struct calendar *c)
{
	s64 month = (c->month + 9) % 12, year = c->year - (c->month < 3);
	s64 era = floor_div(year, 400), of_era = year - era * 400;
	s64 days = era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + MARCH_DAYS(month) + c->day -
		   1 - ERA_TO_1970;

	return days * DAY_SECONDS + c->hour * 3600 + c->minute * 60 + c->second;
}

struct calendar calendar_of(s64 seconds)
{
	s64 days = floor_div(seconds, DAY_SECONDS), rest = seconds - days * DAY_SECONDS;
	s64 since = days + ERA_TO_1970, era = floor_div(since, ERA_DAYS), day = since - era * ERA_DAYS;
	s64 year = (day - day / 1460 + day / 36524 - day / (ERA_DAYS - 1)) / 365;
	s64 month;

	day -= 365 * year + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	return (struct calendar){
		.year = (s32)(year + era * 400 + (month >= 10)),
		.month = (u8)(month < 10 ? month + 3 : month - 9),
		.day = (u8)(day - MARCH_DAYS(month) + 1),
		.hour = (u8)(rest / 3600),
		.minute = (u8)(rest / 60 % 60),
		.second = (u8)(rest % 60),
		.weekday = (u8)((days % 7 + 7 + THURSDAY - 1) % 7 + 1),
	};
}
