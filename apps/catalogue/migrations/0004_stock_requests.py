import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalogue', '0003_deletions_in_history'),
    ]

    operations = [
        migrations.CreateModel(
            name='StockRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254, verbose_name='e-mail')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('product', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='requests', to='catalogue.product', verbose_name='product')),
            ],
            options={
                'verbose_name': 'request for stock',
                'verbose_name_plural': 'requests for stock',
                'ordering': ('-created_at', '-pk'),
                'indexes': [models.Index(fields=['-created_at', '-id'], name='catalogue_request_newest')],
                'constraints': [models.UniqueConstraint(models.F('product'), django.db.models.functions.text.Lower('email'), name='catalogue_request_once')],
            },
        ),
    ]
